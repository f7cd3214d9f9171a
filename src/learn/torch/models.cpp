// Chooses the model, refuses misfits, lays the tensors out.
#include "learn/torch/models.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/rng.h"

namespace motley::learn {

namespace {

constexpr std::uint64_t max_width = 65'536;
constexpr std::uint64_t max_layers = 256;
constexpr std::uint64_t max_values = std::uint64_t{1} << 30;  // 4 GiB of floats, several times over while training

bool wants_pictures(const ModelSpec& spec) {
  return spec.kind == "cnn" || spec.kind == "vgg11" || spec.kind == "resnet18" || spec.kind == "resnet20";
}

/// What was left open is as usual.
ModelSpec completed(ModelSpec spec) {
  if (spec.width == 0) spec.width = spec.kind == "resnet18" ? 64 : 16;
  return spec;
}

Error refuse(const ModelSpec& spec, std::string_view found, std::string_view expected, std::string_view change) {
  return bad_input(
      fmt::format("cannot make the model \"{}\": found {}, expected {}; change [model] {}", spec.kind, found, expected, change));
}

Outcome sizes_within_bounds(const ModelSpec& spec) {
  const auto width_ok = [](std::uint64_t width) { return width >= 1 && width <= max_width; };
  if (spec.kind == "mlp" && (spec.hidden.size() > max_layers || !std::all_of(spec.hidden.begin(), spec.hidden.end(), width_ok)))
    return refuse(spec, fmt::format("hidden = [{}]", fmt::join(spec.hidden, ", ")),
                  fmt::format("at most {} widths of 1 to {}", max_layers, max_width), "hidden");
  if (spec.kind != "mlp" && !width_ok(spec.width))
    return refuse(spec, fmt::format("width = {}", spec.width), fmt::format("1 to {}", max_width), "width");
  if (spec.depth > max_layers) return refuse(spec, fmt::format("depth = {}", spec.depth), fmt::format("1 to {}", max_layers), "depth");
  if (spec.kind == "transformer" && (spec.heads < 1 || spec.width % spec.heads != 0))
    return refuse(spec, fmt::format("width = {}, heads = {}", spec.width, spec.heads), "a width that the heads divide", "width or heads");
  return Done{};
}

Outcome fits(const ModelSpec& spec, const SampleShape& data) {
  if (data.text && spec.kind != "transformer") return refuse(spec, describe(data), "kind = \"transformer\" for text", "kind");
  if (!data.text && spec.kind == "transformer")
    return refuse(spec, describe(data), "text; for pictures kind = \"mlp\", \"cnn\", \"resnet18\", \"resnet20\" or \"vgg11\"", "kind");
  const std::int64_t least = spec.kind == "resnet18" ? 16 : 8;  // it halves them one time more
  if (wants_pictures(spec) && (data.height < least || data.width < least))
    return refuse(spec, describe(data), fmt::format("pictures of {0}x{0} or more; for others kind = \"mlp\"", least), "kind");
  return Done{};
}

std::uint64_t count_of(const Slot& slot) {
  std::uint64_t count = 1;
  for (const std::int64_t size : slot.shape) count *= static_cast<std::uint64_t>(size);
  return count;
}

}  // namespace

Model lay_out(Blocks blocks, std::uint32_t first_block) {
  Model model{std::move(blocks), {}, {}};
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

Result<Model> make_model(const ModelSpec& wanted, const SampleShape& data) {
  const ModelSpec spec = completed(wanted);
  using Make = Blocks (*)(const ModelSpec&, const SampleShape&);
  constexpr std::pair<std::string_view, Make> known[] = {{"mlp", mlp},           {"cnn", cnn},     {"resnet18", resnet18},
                                                         {"resnet20", resnet20}, {"vgg11", vgg11}, {"transformer", transformer}};
  const auto* entry = std::find_if(std::begin(known), std::end(known), [&](const auto& k) { return k.first == spec.kind; });
  if (entry == std::end(known)) return refuse(spec, "that kind", "mlp, cnn, resnet18, resnet20, vgg11 or transformer", "kind");
  if (auto ok = sizes_within_bounds(spec); !ok) return ok.error();
  if (auto ok = fits(spec, data); !ok) return ok.error();
  Model model = lay_out(entry->second(spec, data));
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
