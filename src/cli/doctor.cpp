// Assesses facts and formats the findings. doctor_facts.cpp gathers them.
#include "cli/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "report/json_text.h"

namespace motley::cli {
namespace {

std::string gibibytes(std::uint64_t bytes) { return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1U << 30U)); }

Finding assess_cpu(const Facts& facts) {
  const std::string seen =
      fmt::format("{}, {} core{}", facts.cpu.empty() ? "unknown model" : facts.cpu, facts.cores, facts.cores == 1 ? "" : "s");
  if (facts.cores >= 2) return {Verdict::ok, "cpu", seen, {}};
  return {Verdict::hint, "cpu", seen, "several workers on one core take turns; `motley simulate` needs one core only"};
}

Finding assess_memory(const Facts& facts) {
  constexpr std::uint64_t comfortable = 2ULL << 30U;  // data sets, libtorch and a few workers
  if (facts.memory_bytes == 0) return {Verdict::hint, "memory", "unknown", "/proc/meminfo does not say; Motley wants 2 GiB"};
  const std::string seen = fmt::format("{}, {} of it free", gibibytes(facts.memory_bytes), gibibytes(facts.memory_available));
  if (facts.memory_available >= comfortable) return {Verdict::ok, "memory", seen, {}};
  return {Verdict::hint, "memory", seen, "close other programs, or train fewer workers at once: Motley wants 2 GiB"};
}

Finding assess_torch(const Facts& facts) {
  if (facts.torch) return {Verdict::ok, "torch", facts.backend, {}};
  return {Verdict::missing, "torch", facts.backend,
          "apt-get install libtorch-dev, then build with -DMOTLEY_TORCH=ON; without it only jobs with [model] kind = \"none\" run"};
}

Finding assess_blas(const Facts& facts) {
  if (!facts.torch || facts.blas != "other") return {Verdict::ok, "blas", facts.blas, {}};
  return {Verdict::hint, "blas", "neither OpenBLAS nor MKL", "apt-get install libopenblas0-pthread: the reference BLAS is 40 times slower"};
}

Finding assess_data(const DataFact& data) {
  const std::string subject = fmt::format("data {}", data.kind);
  if (data.found) return {Verdict::ok, subject, data.folder.string(), {}};
  return {Verdict::missing, subject, fmt::format("not in {}", data.folder.string()), data.why_not};
}

Finding assess_runs(const Facts& facts) {
  const std::string where = facts.runs.string();
  if (facts.runs_writable) return {Verdict::ok, "runs", where + " is writable", {}};
  return {Verdict::missing, "runs", where + " cannot be written",
          "start motley in a folder that you can write to: results go to its subfolder runs/"};
}

std::string_view word(Verdict verdict) {
  switch (verdict) {
    case Verdict::ok: return "ok";
    case Verdict::missing: return "missing";
    case Verdict::hint: return "hint";
  }
  return "";
}

boost::json::object as_json(const Finding& finding) {
  return {{"verdict", word(finding.verdict)}, {"subject", finding.subject}, {"seen", finding.seen}, {"remedy", finding.remedy}};
}

boost::json::object as_json(const DataFact& data) { return {{"kind", data.kind}, {"folder", data.folder.string()}, {"found", data.found}}; }

template <class Items>
boost::json::array as_array(const Items& items) {
  boost::json::array out;
  for (const auto& item : items) out.push_back(as_json(item));
  return out;
}

}  // namespace

std::vector<Finding> assess(const Facts& facts) {
  std::vector<Finding> findings{assess_cpu(facts), assess_memory(facts), assess_torch(facts), assess_blas(facts)};
  for (const DataFact& data : facts.data) findings.push_back(assess_data(data));
  findings.push_back(assess_runs(facts));
  return findings;
}

std::string to_text(const std::vector<Finding>& findings) {
  std::string out;
  for (const Finding& finding : findings) {
    out += fmt::format("{:<8} {:<20} {}\n", word(finding.verdict), finding.subject, finding.seen);
    if (!finding.remedy.empty()) out += fmt::format("{:<8} {:<20} -> {}\n", "", "", finding.remedy);
  }
  return out;
}

std::string to_json(const Facts& facts, const std::vector<Finding>& findings) {
  const bool ok = std::none_of(findings.begin(), findings.end(), [](const Finding& f) { return f.verdict == Verdict::missing; });
  const boost::json::object out{{"ok", ok},
                                {"cpu", facts.cpu},
                                {"cores", facts.cores},
                                {"memory_bytes", facts.memory_bytes},
                                {"memory_available_bytes", facts.memory_available},
                                {"torch", facts.torch},
                                {"backend", facts.backend},
                                {"blas", facts.blas},
                                {"data", as_array(facts.data)},
                                {"runs", facts.runs.string()},
                                {"runs_writable", facts.runs_writable},
                                {"findings", as_array(findings)}};
  return report::json_text(out);
}

}  // namespace motley::cli
