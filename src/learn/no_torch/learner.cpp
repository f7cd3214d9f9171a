// Absence is a file: the learner of a binary built with -DMOTLEY_TORCH=OFF. It refuses, and says how to get one that does not.
#include "learn/learner.h"

namespace motley::learn {

Result<std::unique_ptr<Learner>> make_learner(const ModelSpec& spec, std::shared_ptr<const DataSet>) {
  return bad_input("cannot make the model '" + spec.kind +
                   "': this motley was built without torch; build it with -DMOTLEY_TORCH=ON (on Debian: apt-get install libtorch-dev)");
}

bool available() { return false; }

std::string describe_backend() { return "built without torch: real gradients need a build with -DMOTLEY_TORCH=ON"; }

void use_threads(int) {}

}  // namespace motley::learn
