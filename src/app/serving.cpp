#include "app/serving.h"

#include <fmt/format.h>

#include <cstdio>
#include <sstream>

#include "app/commands.h"
#include "app/json_text.h"
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

int conclude(const ServeArguments& arguments, const Conclusion& run) {
  const Job& job = run.job;
  const std::string command = fmt::format("motley train {}", (run.folder.path() / "job.toml").string());
  if (!run.values.empty() && run.ending.why != protocol::Ended::diverged) {  // what others would take for a result
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
    fmt::print("{}\n", json_text(run_json(seen, *result)));
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
