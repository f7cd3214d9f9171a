// The job reader on arbitrary text: the document, then after each NUL an override that is applied to it. The strategy list of a valid job
// is read too. Loading the file is left out.
#include <string>
#include <vector>

#include "config/job.h"
#include "config/job_sections.h"
#include "config/toml_override.h"
#include "fuzzing.h"

using namespace motley;  // NOLINT(google-build-using-namespace): a program of few functions

namespace {

std::vector<std::string> pieces_of(std::string_view text) {
  std::vector<std::string> pieces;
  for (std::size_t end = text.find('\0'); end != std::string_view::npos; end = text.find('\0')) {
    pieces.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  pieces.emplace_back(text);
  return pieces;
}

void check_error(const Error& error) {
  check(error.next == Next::tell_user, "an invalid job is the user's error");
  check(!error.message.empty(), "an error has a message");
}

/// As read_job() does after loading the file.
bool read_sections(const config::Value& document, config::Job& job) {
  config::Complaints complaints;
  config::Reader root(document, "", complaints);
  config::read_training(root.section("job"), job);
  config::read_model(root.section("model"), job, {});
  config::read_data(root.section("data"), job, {});
  config::read_optimizer(root.section("optimizer"), job);
  config::read_wire(root.section("wire"), job);
  config::read_cluster(root.section("cluster"), job);
  config::read_batch(root.section("batch"), job);
  config::read_strategy_section(root.section("strategy"), job.strategy);
  root.finish();
  if (!complaints.empty()) check_error(complaints.error());
  return complaints.empty();
}

void check_job(const config::Job& job) {
  check(job.max_epochs > 0 && job.evaluate_every > 0 && job.global_batch > 0, "a valid job trains and evaluates");
  check(!job.cluster.nodes.empty() && job.cluster.servers > 0, "a valid job has workers and servers");
  check(job.slice_bytes > 0 && job.slice_bytes % sizeof(float) == 0, "a slice is a multiple of the size of a value");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<std::string> pieces = pieces_of({reinterpret_cast<const char*>(data), size});
  auto document = config::parse_toml(pieces.front(), "job.toml");
  if (!document.ok()) return check_error(document.error()), 0;
  for (std::size_t i = 1; i < pieces.size(); ++i)
    if (const Outcome set = config::apply_override(*document, pieces[i]); !set.ok()) check_error(set.error());
  config::Job job;
  if (!read_sections(*document, job)) return 0;
  check_job(job);
  for (const std::string& text : pieces)
    if (const auto strategy = config::read_strategy(job, text); !strategy.ok()) check_error(strategy.error());
  return 0;
}
