// `motley doctor`: checks whether this machine has everything that Motley needs, and how to get what is missing. Gathering facts and
// assessing them are separate, so that tests can describe machines.
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
  std::string why_not;  // the loader's error with its remedy; empty when found
};

/// The facts about a machine, without a verdict.
struct Facts {
  std::string cpu;  // "AMD EPYC 7B13"; empty when the system does not say
  unsigned cores{};
  std::uint64_t memory_bytes{};  // 0 when the system does not say
  std::uint64_t memory_available{};
  bool torch{};
  std::string backend;  // learn::describe_backend()
  std::string blas;     // "OpenBLAS", "MKL", "other", or "none" without torch
  std::vector<DataFact> data;
  std::filesystem::path runs;  // folder for results
  bool runs_writable{};
};

enum class Verdict { ok, missing, hint };

/// One line of the output. `remedy` is empty when the verdict is ok.
struct Finding {
  Verdict verdict{};
  std::string subject;  // "torch"
  std::string seen;
  std::string remedy;
};

/// Examines this machine. Loads the default data sets (about a second); creates nothing.
Facts gather_facts();

/// Pure. `missing`: real training does not work without it; `hint`: training works, but slower.
std::vector<Finding> assess(const Facts& facts);

/// One line per finding, "ok      torch     libtorch 1.13.1, ..." with the remedy below.
std::string to_text(const std::vector<Finding>& findings);

/// One object: `ok` (nothing is missing), the facts by name, and `findings`.
std::string to_json(const Facts& facts, const std::vector<Finding>& findings);

}  // namespace motley::cli
