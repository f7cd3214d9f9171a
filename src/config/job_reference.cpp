#include "config/job_reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/check.h"
#include "config/job_sections.h"
#include "config/key_table.h"

namespace motley::config {
namespace {

// The reader reads some keys only in certain jobs; these two jobs together contain every section.
constexpr std::string_view trained_job = R"(
[[cluster.group]]
name = "rack"
bandwidth = "1Gbit/s"
[[cluster.node]]
count = 2
samples_per_second = 1
slowdowns = { mean_length_s = 1, mean_gap_s = 1 }
[[cluster.fault]]
at = 1
kind = "kill"
node = "worker-1"
)";
constexpr std::string_view timing_only_job = R"(
[model]
kind = "none"
values = 1
[data]
samples = 1
[[cluster.node]]
samples_per_second = 1
)";

void collect(std::string_view text, const KnownKinds& known, KeyTable& keys) {
  const auto document = parse_toml(text, "the reference job");
  check(document.ok(), "the reference job is TOML");
  Complaints complaints;
  Job job;
  Reader root(*document, "", complaints, &keys);
  read_sections(root, job, known);
  check(complaints.empty(), "the reference job is valid");
}

/// Escapes the vertical bar, which would end the cell.
std::string cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, 1, '\\');
  return text;
}

std::string code(const std::string& text) { return text.empty() || text == "required" ? text : fmt::format("`{}`", text); }

}  // namespace

std::string job_reference(const KnownKinds& known) {
  KeyTable keys;
  collect(trained_job, known, keys);
  collect(timing_only_job, known, keys);
  std::string page =
      "# The job file\n\n"
      "A job is one TOML file: model and data, cluster, strategy. Only `[[cluster.node]]` is required. This page is "
      "printed\n"
      "by `motley doc job` from the table that the reader of jobs uses. `--set a.b=c` overrides any key; `cluster.node.0.jitter` is a key "
      "of the\n"
      "first node. Bytes may have a unit (`\"64KiB\"`), and so may rates (`\"125MB/s\"`, `\"1Gbit/s\"`).\n";
  for (const KeySection& section : keys.sections()) {
    const std::string heading = section.repeated ? fmt::format("[[{}]]", section.path) : fmt::format("[{}]", section.path);
    page += fmt::format("\n## {}\n\n{}\n\n", heading, section.meaning);
    if (section.rows.empty()) continue;
    page += "| key | type | default | accepted | unit | meaning |\n|---|---|---|---|---|---|\n";
    for (const KeyRow& row : section.rows)
      page += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", row.key, row.type, code(row.preset), cell(row.accepted), row.unit,
                          cell(row.meaning));
  }
  return page;
}

}  // namespace motley::config
