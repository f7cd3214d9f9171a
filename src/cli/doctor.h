// `motley doctor`: what this machine has for Motley, what is missing, how to get it. Looking and judging are apart, so that tests can
// invent machines.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace motley::cli {

/// A data set that loads without a path in the job, if its files are there.
struct DataFact {
  std::string kind;
  std::filesystem::path folder;
  bool found{};
  std::string why_not;  // the loader's own words, remedy included; empty when found
};

/// What was seen. Nothing here is judged.
struct Facts {
  std::string cpu;  // "AMD EPYC 7B13"; empty where the system does not say
  unsigned cores{};
  std::uint64_t memory_bytes{};  // 0 where the system does not say
  std::uint64_t memory_available{};
  bool torch{};
  std::string backend;  // learn::describe_backend()
  std::string blas;     // "OpenBLAS", "MKL", "other", or "none" without torch
  std::vector<DataFact> data;
  std::filesystem::path runs;  // where results go
  bool runs_writable{};
};

enum class Verdict { ok, missing, hint };

/// One line of the answer. `remedy` is empty when the verdict is ok.
struct Finding {
  Verdict verdict{};
  std::string subject;  // "torch"
  std::string seen;
  std::string remedy;
};

/// Looks at this machine. Loads the default data sets (a second or so); creates nothing.
Facts gather_facts();

/// Pure. `missing`: real training does not work without it; `hint`: it works, but worse than it could.
std::vector<Finding> assess(const Facts& facts);

/// One line for each finding, "ok      torch     libtorch 1.13.1, ..." with the remedy below.
std::string to_text(const std::vector<Finding>& findings);

/// One object: `ok` (nothing is missing), the facts by name, and `findings`.
std::string to_json(const Facts& facts, const std::vector<Finding>& findings);

}  // namespace motley::cli
