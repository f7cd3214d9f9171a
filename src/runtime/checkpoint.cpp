#include "runtime/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <fstream>
#include <functional>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "runtime/checkpoint_state.h"
#include "store/atomic_file.h"
#include "store/safetensors.h"

namespace motley::runtime {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr std::size_t kept_checkpoints = 2;
constexpr const char* latest = "latest";
constexpr const char* second_prefix = "optimizer.second.";

/// The tensors of a checkpoint, one behind the other: the model's, then the optimizer's.
std::vector<store::NamedTensor> tensors_of(const ModelShape& model, bool second) {
  std::vector<store::NamedTensor> tensors = store::named_tensors(model);
  const auto add = [&](const char* prefix, std::uint64_t offset) {
    for (const Tensor& tensor : model.tensors)
      if (tensor.kind == TensorKind::parameter) tensors.push_back({prefix + tensor.name, tensor.shape, offset + tensor.offset});
  };
  add("optimizer.first.", model.values());
  if (second) add(second_prefix, model.values() + model.parameters);
  return tensors;
}

std::string rest_json(const Saved& saved) {
  return json::serialize(json::object{{"optimizer_updates", saved.moments.updates}, {"rate", saved.moments.rate}});
}

/// Throws the exceptions of boost::json on other text.
Outcome read_rest(const std::string& text, const CheckpointRules& rules, Restored& out) {
  const json::object rest = json::parse(text).as_object();
  store::Moments& moments = out.initial_state.moments.emplace();
  moments.updates = rest.at("optimizer_updates").to_number<std::uint64_t>();
  moments.rate = rest.at("rate").to_number<double>();
  if (rest.size() != 2) return bad_input("metadata motley.rest: found other members than optimizer_updates and rate");
  if (moments.updates > out.chief.version.value)
    return bad_input(
        fmt::format("optimizer_updates: found {}, expected at most {}, the version", moments.updates, out.chief.version.value));
  if (!(moments.rate >= 0 && moments.rate <= rules.most_rate))
    return bad_input(fmt::format("rate: found {}, expected 0 to {}, the job's learning rate", moments.rate, rules.most_rate));
  return Done{};
}

std::string name_of(Version version) { return fmt::format("{:012}.safetensors", version.value); }

/// Removes all but `newest` and the one before it. Newer ones belong to another run or are damaged; they stay.
void remove_old(const fs::path& folder, const std::string& newest) {
  std::vector<fs::path> older;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".part") fs::remove(entry.path(), ignored);
    if (entry.path().extension() == ".safetensors" && entry.path().filename() < newest) older.push_back(entry.path());
  }
  std::sort(older.begin(), older.end());
  for (std::size_t i = 0; i + kept_checkpoints - 1 < older.size(); ++i) fs::remove(older[i], ignored);
}

/// Every value is finite, and no second moment is negative.
Outcome check_values(const store::TensorFile& file) {
  for (const store::NamedTensor& tensor : file.tensors) {
    const float least = tensor.name.starts_with(second_prefix) ? 0 : std::numeric_limits<float>::lowest();
    std::uint64_t count = 1;
    for (const std::int64_t extent : tensor.shape) count *= static_cast<std::uint64_t>(extent);
    for (const float value : std::span(file.values).subspan(tensor.offset, count))
      if (!(value >= least && value <= std::numeric_limits<float>::max()))
        return bad_input(
            fmt::format("tensor '{}': found the value {}, expected finite ones{}", tensor.name, value, least < 0 ? "" : " of at least 0"));
  }
  return Done{};
}

Result<Restored> load(const fs::path& path, const CheckpointRules& rules) {
  std::error_code failed;
  if (!fs::is_regular_file(path, failed)) return bad_input("found no file there that can be read");
  auto file = store::read_safetensors(path);
  if (!file) return file.error();
  if (!file->checked) return bad_input("found no checksum in it, expected one (versions of Motley before it wrote none)");
  if (file->tensors != tensors_of(rules.model, rules.second))
    return bad_input("found tensors of another model, expected those of this job's");
  if (file->metadata.size() != 3) return bad_input(fmt::format("found {} texts of metadata, expected 3", file->metadata.size()));
  if (file->metadata["motley.job"] != rules.job_sha256)
    return bad_input(
        "found a checkpoint of another job, expected one of this job; resume with the job it was made by (job.toml in its run's folder)");
  auto chief = read_chief_state(file->metadata["motley.chief"]);
  if (!chief) return bad_input(fmt::format("metadata motley.chief: {}", chief.error().message));
  Restored restored;
  restored.file = path;
  restored.chief = std::move(*chief);
  restored.initial_state.version = restored.chief.version;
  if (path.filename() != name_of(restored.chief.version))
    return bad_input(fmt::format("found version {} in it, expected that of its name", restored.chief.version.value));
  try {
    if (const Outcome rest = read_rest(file->metadata["motley.rest"], rules, restored); !rest) return rest.error();
  } catch (const std::exception& wrong) {  // of boost::json
    return bad_input(fmt::format("metadata motley.rest: found text that is not a checkpoint's ({})", wrong.what()));
  }
  if (const Outcome finite = check_values(*file); !finite) return finite.error();
  if (const Outcome fits = rules.fits(restored.chief); !fits) return fits.error();
  const std::uint64_t values = rules.model.values(), parameters = rules.model.parameters;
  const auto at = [&](std::uint64_t offset) { return file->values.begin() + static_cast<std::ptrdiff_t>(offset); };
  restored.initial_state.values.assign(at(0), at(values));
  store::Moments& moments = *restored.initial_state.moments;
  moments.first.assign(at(values), at(values + parameters));
  moments.first.resize(values);
  if (rules.second) {
    moments.second.assign(at(values + parameters), at(values + 2 * parameters));
    moments.second.resize(values);
  }
  return restored;
}

/// The file that `latest` names; empty: none.
std::string named_latest(const fs::path& folder) {
  constexpr std::size_t longest = 64;
  std::ifstream file(folder / latest);
  std::string name(longest, '\0');
  file.read(name.data(), longest);
  name.resize(static_cast<std::size_t>(file.gcount()));
  return name.substr(0,
                     name.find_first_not_of("0123456789.aefnorst"));  // only characters of our names: control characters stay out of logs
}

}  // namespace

Outcome save_checkpoint(const fs::path& folder, const ModelShape& model, const Saved& saved, const std::string& job_sha256) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) return world_failed(fmt::format("{}: cannot be made: {}", folder.string(), failed.message()));
  std::vector<std::span<const float>> pieces{std::as_const(*saved.values).floats()};
  for (const std::vector<float>* moments : {&saved.moments.first, &saved.moments.second})
    if (!moments->empty()) pieces.push_back(std::span(*moments).first(model.parameters));
  const std::string name = name_of(saved.chief.version);
  const std::string chief = chief_state_json(saved.chief);
  if (const auto read = read_chief_state(chief); !read)  // it could never be read again, and would replace one that can
    return world_failed(fmt::format("{}: not written: {}", (folder / name).string(), read.error().message));
  const Outcome written =
      store::write_safetensors(folder / name, tensors_of(model, !saved.moments.second.empty()), pieces,
                               {{"motley.chief", chief}, {"motley.rest", rest_json(saved)}, {"motley.job", job_sha256}});
  if (!written) return written;
  if (const Outcome pointed = store::write_atomically(folder / latest, name + "\n"); !pointed) return pointed;
  remove_old(folder, name);
  return Done{};
}

Result<std::vector<fs::path>> checkpoint_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code failed;
  fs::directory_iterator entry(folder, failed);
  if (failed == std::errc::no_such_file_or_directory) return files;
  for (; !failed && entry != fs::directory_iterator(); entry.increment(failed))
    if (entry->path().extension() == ".safetensors" || entry->path().filename() == latest) files.push_back(entry->path());
  if (failed) return bad_input(fmt::format("{}: checkpoints cannot be looked for: {}", folder.string(), failed.message()));
  std::sort(files.begin(), files.end(), std::greater<>());  // `latest` first
  return files;
}

Result<FoundCheckpoint> find_checkpoint(const fs::path& folder, const CheckpointRules& rules) {
  auto files = checkpoint_files(folder);
  if (!files) return files.error();
  FoundCheckpoint found;
  for (const fs::path& path : *files) {
    if (path.filename() == latest) continue;
    auto restored = load(path, rules);
    if (restored) {
      found.newest = std::move(*restored);
      break;
    }
    found.passed_over.push_back(path);
    found.words.push_back(fmt::format("{} cannot be used: {}", path.filename().string(), restored.error().message));
  }
  const std::string name = named_latest(folder);
  const std::string newest = found.newest ? found.newest->file.filename().string() : "";
  if (!files->empty() && name != newest) found.words.push_back(fmt::format("`latest` names {}", name.empty() ? "none" : name));
  if (found.newest || files->empty()) return found;
  std::string why;
  for (const std::string& word : found.words) why += "\n  " + word;
  return bad_input(
      fmt::format("{}: found no checkpoint that this run can continue from, expected one; nothing was changed. Put back one that "
                  "is whole, or start from scratch with --from-scratch (these are set aside, not deleted){}",
                  folder.string(), why));
}

}  // namespace motley::runtime
