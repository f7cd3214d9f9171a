// Which loader serves which kind, and where its files are by default.
#include "learn/data.h"

#include <fmt/format.h>

#include "learn/cifar.h"
#include "learn/dataset.h"
#include "learn/idx.h"
#include "learn/noise.h"

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
  return std::shared_ptr<const DataSet>(std::make_shared<DataSet>(DataSet::Content(std::move(*loaded))));
}

Result<std::shared_ptr<const DataSet>> load_files(const DataSpec& spec, EvaluateOn evaluate_on) {
  if (spec.path.empty())
    return bad_input(fmt::format("cannot load {}: found no path, expected the place of its files; set [data] path", spec.kind));
  if (spec.kind == "mnist") return share(load_idx(spec.path, mnist_remedy, evaluate_on));
  if (spec.kind == "cifar10") return share(load_cifar10(spec.path, evaluate_on));
  if (spec.kind == "cifar100") return share(load_cifar100(spec.path, evaluate_on));
  return share(load_text(spec.path, spec.context, evaluate_on));
}

}  // namespace

Result<std::shared_ptr<const DataSet>> load(const DataSpec& spec) {
  const EvaluateOn evaluate_on = spec.evaluate == "validation" ? EvaluateOn::validation : EvaluateOn::test;
  if (evaluate_on == EvaluateOn::test && spec.evaluate != "test")
    return bad_input(fmt::format("cannot load {}: found evaluate = \"{}\", expected \"test\" or \"validation\"; change [data] evaluate",
                                 spec.kind, spec.evaluate));
  if (spec.kind == "fashion-mnist")
    return share(load_idx(spec.path.empty() ? "/usr/share/datasets/fashion-mnist" : spec.path, fashion_remedy, evaluate_on));
  if (spec.kind == "noise") return share(make_noise(spec));
  if (spec.kind == "synthetic") return share(make_synthetic(spec, evaluate_on));
  for (const std::string_view kind : {"mnist", "cifar10", "cifar100", "text"})
    if (spec.kind == kind) return load_files(spec, evaluate_on);
  return bad_input(
      fmt::format("cannot load data: found kind = \"{}\", expected fashion-mnist, mnist, cifar10, cifar100, text, synthetic or noise; "
                  "change [data] kind",
                  spec.kind));
}

std::uint64_t training_samples(const DataSet& data) { return data.size(Part::training); }

std::vector<std::uint32_t> training_labels(const DataSet& data) { return data.labels(Part::training); }

}  // namespace motley::learn
