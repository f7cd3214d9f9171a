#include "app/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <fstream>
#include <span>
#include <utility>
#include <vector>

#include "app/checkpoint_state.h"
#include "app/learning.h"
#include "store/safetensors.h"

namespace motley::app {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr std::size_t kept = 2;

/// The tensors of a checkpoint, one behind the other: the model's, then the optimizer's.
std::vector<store::NamedTensor> tensors_of(const learn::ModelShape& shape, bool second) {
  std::vector<store::NamedTensor> tensors = named(shape);
  const auto add = [&](const char* prefix, std::uint64_t offset) {
    for (const learn::Tensor& tensor : shape.tensors)
      if (tensor.kind == learn::TensorKind::parameter) tensors.push_back({prefix + tensor.name, tensor.shape, offset + tensor.offset});
  };
  add("optimizer.first.", shape.values());
  if (second) add("optimizer.second.", shape.values() + shape.parameters);
  return tensors;
}

std::string rest_json(const run::Saved& saved) {
  return json::serialize(json::object{{"optimizer_updates", saved.moments.updates}, {"rate", saved.moments.rate}});
}

/// Throws what boost::json throws on anything else.
void read_rest(const std::string& text, Restored& out) {
  const json::object rest = json::parse(text).as_object();
  out.beginning.moments.emplace();
  out.beginning.moments->updates = rest.at("optimizer_updates").to_number<std::uint64_t>();
  out.beginning.moments->rate = rest.at("rate").to_number<double>();
}

Outcome point_latest_at(const fs::path& folder, const std::string& name) {
  const fs::path beside = folder / "latest.new";
  {
    std::ofstream file(beside, std::ios::trunc);
    file << name << '\n';
    if (!file.flush()) return world_failed(fmt::format("{}: cannot be written; is the disk full?", beside.string()));
  }
  std::error_code failed;
  fs::rename(beside, folder / "latest", failed);
  if (failed) return world_failed(fmt::format("{}: {}", (folder / "latest").string(), failed.message()));
  return Done{};
}

void remove_old(const fs::path& folder, const std::string& newest) {
  std::vector<fs::path> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (entry.path().extension() == ".safetensors" && entry.path().filename() != newest) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (std::size_t i = 0; i + kept - 1 < files.size(); ++i) fs::remove(files[i], ignored);
}

}  // namespace

Outcome save_checkpoint(const fs::path& folder, const learn::ModelShape& shape, const run::Saved& saved, const std::string& job_sha256) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) return world_failed(fmt::format("{}: cannot be made: {}", folder.string(), failed.message()));
  std::vector<std::span<const float>> pieces{std::as_const(*saved.values).floats()};
  for (const std::vector<float>* moments : {&saved.moments.first, &saved.moments.second})
    if (!moments->empty()) pieces.push_back(std::span(*moments).first(shape.parameters));
  const std::string name = fmt::format("{:012}.safetensors", saved.chief.version.value);
  const Outcome written = store::write_safetensors(
      folder / name, tensors_of(shape, !saved.moments.second.empty()), pieces,
      {{"motley.chief", chief_state_json(saved.chief)}, {"motley.rest", rest_json(saved)}, {"motley.job", job_sha256}});
  if (!written) return written;
  if (const Outcome pointed = point_latest_at(folder, name); !pointed) return pointed;
  remove_old(folder, name);
  return Done{};
}

Result<std::optional<Restored>> load_checkpoint(const fs::path& folder, const learn::ModelShape& shape, const std::string& job_sha256) {
  using Answer = std::optional<Restored>;
  std::ifstream pointer(folder / "latest");
  std::string name;
  if (!pointer || !std::getline(pointer, name)) return Answer{};
  Restored restored;
  restored.file = folder / name;
  auto file = store::read_safetensors(restored.file);
  if (!file) return file.error();
  const bool second = file->values.size() == shape.values() + 2 * shape.parameters;
  if (file->tensors != tensors_of(shape, second))
    return bad_input(fmt::format("{}: found tensors of another model, expected those of this job's", restored.file.string()));
  if (file->metadata["motley.job"] != job_sha256)
    return bad_input(
        fmt::format("{}: found a checkpoint of another job, expected one of this job; resume with the job it was made by "
                    "(job.toml in its run's folder)",
                    restored.file.string()));
  auto chief = read_chief_state(file->metadata["motley.chief"]);
  if (!chief) return bad_input(fmt::format("{}: metadata motley.chief: {}", restored.file.string(), chief.error().message));
  restored.chief = std::move(*chief);
  restored.beginning.version = restored.chief.version;
  try {
    read_rest(file->metadata["motley.rest"], restored);
  } catch (const std::exception& wrong) {
    return bad_input(
        fmt::format("{}: metadata motley.rest: found what a checkpoint does not have ({})", restored.file.string(), wrong.what()));
  }
  const auto at = [&](std::uint64_t offset) { return file->values.begin() + static_cast<std::ptrdiff_t>(offset); };
  restored.beginning.values.assign(at(0), at(shape.values()));
  auto& moments = *restored.beginning.moments;
  moments.first.assign(at(shape.values()), at(shape.values() + shape.parameters));
  moments.first.resize(shape.values());
  if (second) {
    moments.second.assign(at(shape.values() + shape.parameters), at(shape.values() + 2 * shape.parameters));
    moments.second.resize(shape.values());
  }
  return Answer{std::move(restored)};
}

}  // namespace motley::app
