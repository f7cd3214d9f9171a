#include "app/serving.h"

#include <fmt/format.h>

#include <boost/json/serialize.hpp>
#include <cstdio>
#include <sstream>

#include "app/commands.h"
#include "app/learning.h"
#include "app/results.h"
#include "report/table.h"
#include "store/safetensors.h"

namespace motley::app {

void ServeArguments::tell_launcher(const std::string& line) const {
  if (!launched) return;
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

Result<ChiefDoor> chief_door(const ServeArguments& arguments, const std::filesystem::path& run, std::uint64_t slice_bytes) {
  auto allowed = arguments.door.transport(slice_bytes);
  if (!allowed) return allowed.error();
  auto address = transport::parse_address(arguments.listen);
  if (!address) return address.error();
  ChiefDoor door{std::move(*address), std::move(*allowed), std::nullopt};
  if (!arguments.door.lacks_token(door.address, door.allowed)) return door;
  auto made = RunToken::of(run);
  if (!made) return made.error();
  door.allowed.token = made->secret();
  door.made = std::move(*made);
  return door;
}

std::string how_to_join(const std::string& command, const transport::Address& listening, const RunToken& token) {
  return fmt::format("join with: motley {} --join {} --token-file {} (others need a copy of that file)", command, to_text(listening),
                     token.file().string());
}

int conclude(const ServeArguments& arguments, const Conclusion& run) {
  const Job& job = run.job;
  const std::string command = fmt::format("motley train {}", (run.folder.path() / "job.toml").string());
  if (!run.values.empty()) {
    const Outcome written =
        store::write_safetensors(run.folder.path() / "model.safetensors", named(run.shape), run.values, {{"format", "pt"}});
    if (!written) return fail(written.error());
  }
  const auto result = run.folder.finish(job, run.nodes, run.ending, run.sum_of_parts, command, run.pipeline);
  if (!result) return fail(result.error());
  const Job seen = with_strangers(job, run.nodes);
  if (arguments.launched) {
    std::istringstream text(run_text(seen, *result) + "\n" + report::text_table(comparison(seen, {*result}, {job.seed}, command)));
    for (std::string line; std::getline(text, line);) arguments.tell_launcher("say " + line);
  } else if (arguments.job.json) {
    fmt::print("{}\n", boost::json::serialize(run_json(seen, *result)));
  } else {
    fmt::print("{}run: {}\n", run_text(seen, *result), run.folder.path().string());
  }
  if (failed(result->ending.why)) {
    fmt::print(stderr, "{}: training failed after {:.1f} s: {}\n", job.name, seconds(result->ending.ended),
               ended_sentence(result->ending.why));
    return ExitCode::cluster_failed;
  }
  if (arguments.require_target && (!job.target_accuracy || !trace::time_to_target(result->summary.curve(), *job.target_accuracy))) {
    fmt::print(stderr, "{}: target accuracy {} was not reached\n", job.name, job.target_accuracy.value_or(0));
    return ExitCode::target_missed;
  }
  return ExitCode::done;
}

}  // namespace motley::app
