// [model], [data] and [optimizer]. Whether model and data fit each other is checked by `learn`.
#include <array>

#include "config/job_sections.h"

namespace motley::config {
namespace {

using namespace std::string_view_literals;
using Schedule = policy::LrScheduleSpec::Kind;

constexpr std::array precisions{"fp32"sv, "tf32"sv, "bf16"sv};
constexpr std::array splits{"shuffled"sv, "by-label"sv};
constexpr std::array evaluations{"test"sv, "validation"sv};
constexpr std::array optimizers{Named{"sgd"sv, OptimizerKind::sgd}, Named{"adamw"sv, OptimizerKind::adamw}};
constexpr std::array schedules{Named{"constant"sv, Schedule::constant}, Named{"step"sv, Schedule::step},
                               Named{"cosine"sv, Schedule::cosine}};

constexpr double max_batch = 4294967295.0;  // the largest index of a permutation of 32 bit integers

/// One of `known`, or "none" where `or_none`; any name where none are known.
void read_kind(Reader& section, std::string_view key, std::string& kind, const std::vector<std::string>& known, bool or_none,
               std::string_view meaning) {
  if (known.empty()) return section.text(key, kind, meaning);
  std::vector<std::string_view> names(known.begin(), known.end());
  if (or_none) names.push_back("none");
  section.choice(key, kind, names, meaning);
}

/// Data of a timing-only run: only its size matters.
void read_timing_data(Reader& section, Job& job, const KnownKinds& known) {
  std::string kind = "none";
  read_kind(section, "kind", kind, known.data_sets, true, "the data set");
  if (kind != "none") section.complain("kind", "\"none\", or no data.kind at all, because model.kind is \"none\"");
  section.integer("samples", job.timing_samples, at_least(1).no_more_than(max_batch).in("samples"),
                  "model.kind \"none\": samples of one epoch", required);
}

void read_real_data(Reader& section, Job& job, const KnownKinds& known) {
  read_kind(section, "kind", job.data.kind, known.data_sets, true, "the data set");
  if (job.data.kind == "none") section.complain("kind", "the data set of the model", "only model.kind = \"none\" trains without data");
  section.integer("samples", job.data.samples, between(4, 1e8).in("samples"), "synthetic, noise: training samples");
}

}  // namespace

void read_model(Reader section, Job& job, const KnownKinds& known) {
  read_kind(section, "kind", job.model.kind, known.models, true, "the model; none: only time and versions are simulated");
  job.timing_only = job.model.kind == "none";
  section.integers("hidden", job.model.hidden, between(1, 1e6), 64, "mlp: widths between input and classes");
  section.integer("width", job.model.width, between(1, 65536),
                  "channels of the first block, or width of the transformer's embedding; default: 64 for resnet18, 16 for others");
  section.integer(
      "depth", job.model.depth, between(1, 1000),
      "transformer: blocks (default 2); resnet18, resnet20: units of each layer (2, 3); vgg11: repetitions of each convolution (1)");
  read_kind(section, "loss", job.model.loss, known.losses, false, "the loss that training minimises");
  section.choice("precision", job.model.precision, precisions, "format of a GPU's matrix products; a CPU always computes in fp32");
  section.integer("heads", job.model.heads, between(1, 1024), "transformer: attention heads");
  section.integer("values", job.timing_values, at_least(1).no_more_than(1e11), "kind \"none\": number of values of the model",
                  job.timing_only ? required : Presence::optional);
  section.bytes("activation_bytes_per_sample", job.timing_activation_bytes, at_least(0).no_more_than(1e15),
                "kind \"none\": memory of each sample of a step");
  if (!job.timing_only && section.has("activation_bytes_per_sample"))
    section.complain("activation_bytes_per_sample", "no such key for a model that is computed", "its activations are measured");
  section.finish();
}

void read_data(Reader section, Job& job, const KnownKinds& known) {
  if (job.timing_only)
    read_timing_data(section, job, known);
  else
    read_real_data(section, job, known);
  std::string path;
  section.text("path", path, "folder of the data set, or file of a text");
  job.data.path = path;
  section.choice("evaluate", job.data.evaluate, evaluations,
                 "the samples of evaluations; validation: the last tenth of the training set, which is then not trained on");
  section.choice("split", job.data.split, splits, "which samples a node gets: any, or those of some classes only");
  section.integer("features", job.data.features, between(1, 1e6), "synthetic: number of inputs");
  section.integer("classes", job.data.classes, between(2, 1e6), "synthetic, noise: number of classes");
  section.integers("picture", job.data.picture, between(1, 65536), 3, "noise: channels, height and width");
  section.integer("context", job.data.context, between(1, 65536), "text: characters of one sample");
  section.finish();
}

void read_optimizer(Reader section, Job& job) {
  const Bounds decay = from_to_below(0, 1);
  section.choice<OptimizerKind>("kind", job.optimizer.kind, optimizers, "the update rule");
  section.number("momentum", job.optimizer.momentum, decay, "sgd: momentum");
  section.number("weight_decay", job.optimizer.weight_decay, at_least(0).no_more_than(1e3), "weight decay");
  section.number("beta1", job.optimizer.beta1, decay, "adamw: decay of the first moment");
  section.number("beta2", job.optimizer.beta2, decay, "adamw: decay of the second moment");
  section.number("epsilon", job.optimizer.epsilon, above(0).no_more_than(1), "adamw: added to the denominator");
  section.number("lr", job.schedule.lr, above(0).no_more_than(1e3), "learning rate");
  section.choice<Schedule>("schedule", job.schedule.kind, schedules, "learning rate schedule");
  section.number("warmup", job.schedule.warmup, at_least(0).no_more_than(1e9).in("global batches"),
                 "updates over which the rate rises from 0");
  section.number("step_every_epochs", job.schedule.step_every_epochs, above(0).no_more_than(1e6).in("epochs"),
                 "schedule \"step\": epochs between steps");
  section.number("step_factor", job.schedule.step_factor, above_up_to(0, 1), "schedule \"step\": factor of each step");
  section.number("final_fraction", job.schedule.final_fraction, between(0, 1),
                 "schedule \"cosine\": the rate at the end, as a share of lr");
  section.finish();
}

}  // namespace motley::config
