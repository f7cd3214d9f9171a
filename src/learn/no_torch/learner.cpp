// The module in a binary built with -DMOTLEY_TORCH=OFF: every model is refused with the way to get a build that has torch.
#include "learn/learner.h"

#include "learn/registry.h"
#include "learn/stage_learner.h"

namespace motley::learn {
namespace {

Error without_torch(const ModelSpec& spec) {
  return bad_input("cannot make the model '" + spec.kind +
                   "': this motley was built without torch; build it with -DMOTLEY_TORCH=ON (on Debian: apt-get install libtorch-dev)");
}

}  // namespace

Result<std::unique_ptr<Learner>> make_learner(const ModelSpec& spec, std::shared_ptr<const DataSet>) { return without_torch(spec); }
Result<std::unique_ptr<Learner>> make_learner(const ModelSpec& spec, std::shared_ptr<const DataSet>, const Place&) {
  return without_torch(spec);
}

Result<std::vector<std::unique_ptr<StageLearner>>> make_stages(const ModelSpec& spec, const std::shared_ptr<const DataSet>&,
                                                               std::span<const std::uint32_t>) {
  return without_torch(spec);
}

Registry<ModelFactory>& models() {
  static Registry<ModelFactory> registry({});
  return registry;
}
Registry<LossFactory>& losses() {
  static Registry<LossFactory> registry({});
  return registry;
}

bool available() { return false; }

int gpus() { return 0; }

std::string describe_backend() { return "built without torch: real gradients need a build with -DMOTLEY_TORCH=ON"; }

void use_threads(int) {}

}  // namespace motley::learn
