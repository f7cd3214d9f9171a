#include "learn/torch/models.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/rng.h"
#include "learn/registry.h"

namespace motley::learn {

namespace {

constexpr std::uint64_t max_width = 65'536;
constexpr std::uint64_t max_layers = 256;
constexpr std::uint64_t max_values = std::uint64_t{1} << 30;  // 4 GiB of floats, several times over while training

/// A built-in model and its requirements.
struct BuiltIn {
  Blocks (*make)(const ModelSpec&, const SampleShape&);
  bool reads_text = false;
  bool has_hidden_layers = false;    // its sizes are spec.hidden; otherwise spec.width
  std::int64_t least_side = 0;       // pixels: height and width of the smallest picture; 0: reads features too
  std::uint64_t default_width = 16;  // where spec.width is 0
};

Error refuse(const ModelSpec& spec, std::string_view found, std::string_view expected, std::string_view change) {
  return bad_input(
      fmt::format("cannot make the model \"{}\": found {}, expected {}; change [model] {}", spec.kind, found, expected, change));
}

Outcome sizes_within_bounds(const BuiltIn& model, const ModelSpec& spec) {
  const auto width_ok = [](std::uint64_t width) { return width >= 1 && width <= max_width; };
  if (model.has_hidden_layers && (spec.hidden.size() > max_layers || !std::all_of(spec.hidden.begin(), spec.hidden.end(), width_ok)))
    return refuse(spec, fmt::format("hidden = [{}]", fmt::join(spec.hidden, ", ")),
                  fmt::format("at most {} widths of 1 to {}", max_layers, max_width), "hidden");
  if (!model.has_hidden_layers && !width_ok(spec.width))
    return refuse(spec, fmt::format("width = {}", spec.width), fmt::format("1 to {}", max_width), "width");
  if (spec.depth > max_layers) return refuse(spec, fmt::format("depth = {}", spec.depth), fmt::format("1 to {}", max_layers), "depth");
  if (model.reads_text && (spec.heads < 1 || spec.width % spec.heads != 0))
    return refuse(spec, fmt::format("width = {}, heads = {}", spec.width, spec.heads), "a width that the heads divide", "width or heads");
  return Done{};
}

Outcome fits(const BuiltIn& model, const ModelSpec& spec, const SampleShape& data) {
  if (data.text && !model.reads_text) return refuse(spec, describe(data), "kind = \"transformer\" for text", "kind");
  if (!data.text && model.reads_text)
    return refuse(spec, describe(data), "text; for pictures kind = \"mlp\", \"cnn\", \"resnet18\", \"resnet20\" or \"vgg11\"", "kind");
  if (data.height < model.least_side || data.width < model.least_side)
    return refuse(spec, describe(data), fmt::format("pictures of {0}x{0} or more; for others kind = \"mlp\"", model.least_side), "kind");
  return Done{};
}

ModelFactory checked(BuiltIn model) {
  return [model](ModelSpec spec, const SampleShape& data) -> Result<Blocks> {
    if (spec.width == 0) spec.width = model.default_width;
    if (auto ok = sizes_within_bounds(model, spec); !ok) return ok.error();
    if (auto ok = fits(model, spec, data); !ok) return ok.error();
    return model.make(spec, data);
  };
}

std::uint64_t count_of(const Slot& slot) {
  std::uint64_t count = 1;
  for (const std::int64_t size : slot.shape) count *= static_cast<std::uint64_t>(size);
  return count;
}

}  // namespace

Registry<ModelFactory>& models() {
  static Registry<ModelFactory> registry({
      {"mlp", checked({.make = mlp, .has_hidden_layers = true})},
      {"cnn", checked({.make = cnn, .least_side = 8})},
      {"resnet18", checked({.make = resnet18, .least_side = 16, .default_width = 64})},
      {"resnet20", checked({.make = resnet20, .least_side = 8})},
      {"vgg11", checked({.make = vgg11, .least_side = 8})},
      {"transformer", checked({.make = transformer, .reads_text = true})},
  });
  return registry;
}

Model lay_out(Blocks blocks, std::shared_ptr<const LossFunction> loss, std::uint32_t first_block) {
  Model model{std::move(blocks), {}, {}, std::move(loss)};
  model.shape.blocks = static_cast<std::uint32_t>(model.blocks.size());
  std::uint64_t offset = 0;
  for (const TensorKind kind : {TensorKind::parameter, TensorKind::statistic}) {
    for (std::uint32_t b = 0; b < model.blocks.size(); ++b)
      for (Slot& slot : model.blocks[b]->slots()) {
        if (slot.kind != kind) continue;
        model.shape.tensors.push_back(
            {model.blocks[b]->name() + "." + slot.name, slot.shape, offset, count_of(slot), kind, first_block + b});
        model.slots.push_back(&slot);
        offset += count_of(slot);
      }
    if (kind == TensorKind::parameter) model.shape.parameters = offset;
  }
  model.shape.statistics = offset - model.shape.parameters;
  return model;
}

Result<Model> make_model(const ModelSpec& spec, const SampleShape& data) {
  const ModelFactory* make = models().find(spec.kind);
  if (make == nullptr) return refuse(spec, "that kind", models().list(), "kind");
  const LossFactory* make_loss = losses().find(spec.loss);
  if (make_loss == nullptr) return refuse(spec, fmt::format("loss = \"{}\"", spec.loss), losses().list(), "loss");
  auto blocks = (*make)(spec, data);
  if (!blocks) return blocks.error();
  Model model = lay_out(std::move(*blocks), (*make_loss)());
  if (model.shape.values() > max_values)
    return refuse(spec, fmt::format("{} values", model.shape.values()), fmt::format("at most {}", max_values), "its sizes");
  return model;
}

void fill_initial(const Model& model, std::uint64_t seed, std::span<float> values) {
  for (std::size_t t = 0; t < model.slots.size(); ++t) {
    const Tensor& tensor = model.shape.tensors[t];
    const Init init = model.slots[t]->init;
    Rng rng(seed, "initial " + tensor.name);
    for (float& value : values.subspan(tensor.offset, tensor.count))
      value = static_cast<float>(init.deviation > 0 ? init.mean + init.deviation * rng.normal() : init.mean);
  }
}

}  // namespace motley::learn
