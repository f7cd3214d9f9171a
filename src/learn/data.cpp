// The built-in data sets: their loaders and the default folders of their files.
#include "learn/data.h"

#include <fmt/format.h>

#include "learn/cifar.h"
#include "learn/dataset.h"
#include "learn/idx.h"
#include "learn/noise.h"
#include "learn/registry.h"

namespace motley::learn {

namespace {

constexpr std::string_view fashion_remedy =
    "the Debian package has it: apt-get install dataset-fashion-mnist; or set [data] path to a folder with its four idx files";
constexpr std::string_view mnist_remedy =
    "put train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte (plain or .gz) into that "
    "folder; to try without them: [data] kind = \"fashion-mnist\"";

template <class Content>
Result<std::shared_ptr<const DataSet>> share(Result<Content> loaded) {
  if (!loaded) return loaded.error();
  return std::shared_ptr<const DataSet>(std::make_shared<InMemoryDataSet>(InMemoryDataSet::Content(std::move(*loaded))));
}

/// A data set without a default folder. `load_from(spec, evaluate_on)` reads its files.
template <class Load>
DataSetFactory from_files(Load load_from) {
  return [load_from](const DataSpec& spec, EvaluateOn evaluate_on) -> Result<std::shared_ptr<const DataSet>> {
    if (spec.path.empty())
      return bad_input(
          fmt::format("cannot load {}: found no path, expected the folder or file of its samples; set [data] path", spec.kind));
    return share(load_from(spec, evaluate_on));
  };
}

Result<std::shared_ptr<const DataSet>> load_fashion_mnist(const DataSpec& spec, EvaluateOn evaluate_on) {
  return share(load_idx(spec.path.empty() ? "/usr/share/datasets/fashion-mnist" : spec.path, fashion_remedy, evaluate_on));
}

}  // namespace

Registry<DataSetFactory>& data_sets() {
  static Registry<DataSetFactory> registry({
      {"fashion-mnist", load_fashion_mnist},
      {"mnist", from_files([](const DataSpec& spec, EvaluateOn on) { return load_idx(spec.path, mnist_remedy, on); })},
      {"cifar10", from_files([](const DataSpec& spec, EvaluateOn on) { return load_cifar10(spec.path, on); })},
      {"cifar100", from_files([](const DataSpec& spec, EvaluateOn on) { return load_cifar100(spec.path, on); })},
      {"text", from_files([](const DataSpec& spec, EvaluateOn on) { return load_text(spec.path, spec.context, on); })},
      {"synthetic", [](const DataSpec& spec, EvaluateOn on) { return share(make_synthetic(spec, on)); }},
      {"noise", [](const DataSpec& spec, EvaluateOn) { return share(make_noise(spec)); }},
  });
  return registry;
}

Result<std::shared_ptr<const DataSet>> load(const DataSpec& spec) {
  const EvaluateOn evaluate_on = spec.evaluate == "validation" ? EvaluateOn::validation : EvaluateOn::test;
  if (evaluate_on == EvaluateOn::test && spec.evaluate != "test")
    return bad_input(fmt::format("cannot load {}: found evaluate = \"{}\", expected \"test\" or \"validation\"; change [data] evaluate",
                                 spec.kind, spec.evaluate));
  const DataSetFactory* make = data_sets().find(spec.kind);
  if (make == nullptr)
    return bad_input(fmt::format("cannot load data: found kind = \"{}\", expected {}; change [data] kind", spec.kind, data_sets().list()));
  return (*make)(spec, evaluate_on);
}

std::uint64_t training_samples(const DataSet& data) { return data.size(Part::training); }

std::vector<std::uint32_t> training_labels(const DataSet& data) { return data.labels(Part::training); }

}  // namespace motley::learn
