// A second reader of trace.bin and a checker of the ledger, independent of src/trace and src/protocol: every position of every epoch must
// have been counted exactly once, even if processes died.
//
//   file   := "motley trace v2\n" record*                     little-endian
//   record := at:i64 kind:u8 fields 0*                        56 bytes; the fields of each kind: see visit_fields()
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace real {

enum class EventKind : std::uint8_t {
  joined,
  left,
  ordered,
  leased,
  released,
  compute_began,
  compute_ended,
  contributed,
  applied,
  counted,
  held,
  dropped,
  idled,
  evaluated,
  fault,
  finished,
  returned,
  cancelled,
  discarded,
  state,
  straggles,
  grouped,
  part_began,
  part_ended,
  committed,
  repartition
};
enum class WhyLeft : std::uint8_t { said_goodbye, connection_lost, silent_too_long, never_finite, step_too_long, sent_not_finite };

struct Record {
  std::int64_t at_ns = 0;
  EventKind kind{};
  std::uint8_t why = 0;
  std::uint32_t worker = 0;  // or stage
  std::uint32_t node = 0, epoch = 0;
  std::uint64_t step = 0;  // or micro-batch
  std::uint64_t version = 0, first = 0, last = 0, samples = 0, parts = 0;
  std::uint8_t part = 0;
};

struct Trace {
  std::vector<Record> records;
  std::vector<std::string> faults;  // of the file; empty when it is complete
};

inline constexpr std::string_view trace_header = "motley trace v2\n";
inline constexpr std::size_t trace_record_bytes = 56;

/// Passes the leading fields of the kinds that the checkers below know, in the order of the file, to `each`.
template <class Each>
void visit_fields(Record& r, Each&& each) {
  const auto fields = [&](auto&... field) { (each(field), ...); };
  switch (r.kind) {
    case EventKind::joined: return fields(r.worker, r.node, r.version);
    case EventKind::left: return fields(r.worker, r.why, r.node);
    case EventKind::ordered: return fields(r.worker, r.step, r.version, r.samples);
    case EventKind::leased:
    case EventKind::returned: return fields(r.worker, r.step, r.epoch, r.first, r.last);
    case EventKind::applied: return fields(r.version, r.parts);
    case EventKind::counted: return fields(r.worker, r.step, r.version, r.samples);
    case EventKind::cancelled:
    case EventKind::discarded: return fields(r.worker, r.step, r.why);
    case EventKind::finished: return fields(r.why, r.samples);
    case EventKind::part_began: return fields(r.worker, r.step, r.version, r.part);
    case EventKind::part_ended: return fields(r.worker, r.step, r.part);
    case EventKind::committed: return fields(r.worker, r.version);
    case EventKind::repartition: return fields(r.worker, r.why, r.version, r.first, r.last, r.node);
    default: return;
  }
}

inline Trace read_trace(std::string_view bytes) {
  Trace trace;
  if (!bytes.starts_with(trace_header)) return {{}, {"the file does not begin with \"motley trace v2\""}};
  bytes.remove_prefix(trace_header.size());
  if (bytes.size() % trace_record_bytes != 0)
    trace.faults.push_back(std::to_string(bytes.size()) + " bytes are not a multiple of the record size " +
                           std::to_string(trace_record_bytes));
  for (; bytes.size() >= trace_record_bytes; bytes.remove_prefix(trace_record_bytes)) {
    Record r;
    std::memcpy(&r.at_ns, bytes.data(), sizeof r.at_ns);
    std::memcpy(&r.kind, bytes.data() + sizeof r.at_ns, sizeof r.kind);
    const char* at = bytes.data() + sizeof r.at_ns + sizeof r.kind;
    visit_fields(r, [&](auto& field) {
      std::memcpy(&field, at, sizeof field);
      at += sizeof field;
    });
    if (r.kind > EventKind::repartition) trace.faults.push_back("record " + std::to_string(trace.records.size()) + " has an unknown kind");
    trace.records.push_back(r);
  }
  return trace;
}

inline Trace read_trace_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return {{}, {path.string() + " cannot be read"}};
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  return read_trace(bytes);
}

/// Joins leases with counted contributions. A chief that is killed and resumes from a checkpoint repeats updates: a version that is made
/// again replaces the earlier one and all later ones.
class LedgerChecker {
 public:
  void on_event(const Record& r) {
    // A counted part and its update are adjacent: parts without an update died with their chief.
    if (r.kind != EventKind::counted && r.kind != EventKind::applied) parts_.clear();
    if (r.kind == EventKind::ordered) leases_[{r.worker, r.step}].clear();
    if (r.kind == EventKind::leased) leases_[{r.worker, r.step}].push_back({r.epoch, r.first, r.last});
    if (r.kind == EventKind::returned) give_back(r);
    if (r.kind == EventKind::cancelled || r.kind == EventKind::discarded) leases_[{r.worker, r.step}].clear();
    if (r.kind == EventKind::counted) parts_.push_back(r);
    if (r.kind == EventKind::applied) apply(r);
  }

  /// The faults if `total` positions, in epochs of `epoch_samples`, should have been counted. Empty: the ledger is exact.
  [[nodiscard]] std::vector<std::string> faults(std::uint64_t epoch_samples, std::uint64_t total) const {
    std::vector<std::string> faults = faults_;
    std::vector<Range> all;
    for (const auto& [version, ranges] : versions_) all.insert(all.end(), ranges.begin(), ranges.end());
    std::sort(all.begin(), all.end());
    std::uint64_t next = 0;  // the next expected position, over all epochs
    for (const Range& range : all) {
      const std::uint64_t first = range.epoch * epoch_samples + range.first, last = range.epoch * epoch_samples + range.last;
      if (range.first >= range.last || range.last > epoch_samples || last > total) faults.push_back(text(range) + " is not a valid range");
      if (first > next) faults.push_back(std::to_string(first - next) + " positions before " + text(range) + " were never counted");
      if (first < next) faults.push_back(std::to_string(next - first) + " positions of " + text(range) + " or before were counted twice");
      next = std::max(next, last);
    }
    if (next != total) faults.push_back("counted up to " + std::to_string(next) + " of " + std::to_string(total) + " positions");
    return faults;
  }

  [[nodiscard]] std::uint64_t made_again() const { return made_again_; }  // updates

 private:
  struct Range {
    std::uint64_t epoch = 0, first = 0, last = 0;
    auto operator<=>(const Range&) const = default;
  };
  static std::string text(const Range& range) {
    return "epoch " + std::to_string(range.epoch) + " [" + std::to_string(range.first) + ", " + std::to_string(range.last) + ")";
  }

  /// The time limit cut off the end of one of its ranges.
  void give_back(const Record& r) {
    for (Range& range : leases_[{r.worker, r.step}])
      if (range.epoch == r.epoch && range.first <= r.first && range.last == r.last) {
        range.last = r.first;
        std::erase_if(leases_[{r.worker, r.step}], [](const Range& one) { return one.first == one.last; });
        return;
      }
    faults_.push_back("worker " + std::to_string(r.worker) + " step " + std::to_string(r.step) +
                      ": returned positions that it had not leased");
  }

  void apply(const Record& r) {
    const auto again = versions_.lower_bound(r.version);
    made_again_ += static_cast<std::uint64_t>(std::distance(again, versions_.end()));
    versions_.erase(again, versions_.end());
    std::vector<Range>& ranges = versions_[r.version];
    for (const Record& part : parts_) {
      const std::string source = "worker " + std::to_string(part.worker) + " step " + std::to_string(part.step);
      const auto lease = leases_.find({part.worker, part.step});
      if (part.version != r.version) faults_.push_back(source + ": counted in another version than was applied");
      if (lease == leases_.end() || lease->second.empty()) {
        faults_.push_back(source + ": counted without a lease, or twice");
        continue;
      }
      std::uint64_t samples = 0;
      for (const Range& range : lease->second) samples += range.last - range.first;
      if (samples != part.samples) faults_.push_back(source + ": counted with a number of samples that differs from its lease");
      ranges.insert(ranges.end(), lease->second.begin(), lease->second.end());
      lease->second.clear();
    }
    if (parts_.size() != r.parts) faults_.push_back("version " + std::to_string(r.version) + ": its parts differ from the counted ones");
    parts_.clear();
  }

  std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<Range>> leases_;  // by worker and step; emptied when counted
  std::vector<Record> parts_;                                                     // of the next update
  std::map<std::uint64_t, std::vector<Range>> versions_;
  std::vector<std::string> faults_;
  std::uint64_t made_again_ = 0;
};

inline std::vector<std::string> ledger_faults(const Trace& trace, std::uint64_t epoch_samples, std::uint64_t total) {
  if (!trace.faults.empty()) return trace.faults;
  LedgerChecker ledger;
  for (const Record& record : trace.records) ledger.on_event(record);
  return ledger.faults(epoch_samples, total);
}

/// Checks a pipeline of `mini_batches`, the last of `last_micros` micro-batches (0: as many as the others): every stage is announced before
/// its first task, runs forward, input gradient and weight gradient of each micro-batch once and in this order, commits each mini-batch
/// once, in order and with all of its parts, and no forward is more than `ahead` updates late. Work after the model from which training
/// resumed does not count.
inline std::vector<std::string> pipeline_faults(const Trace& trace, std::uint64_t mini_batches, std::uint64_t micro_batches,
                                                std::uint64_t ahead, std::uint64_t last_micros = 0) {
  std::vector<std::string> faults = trace.faults;
  struct Stage {
    std::uint64_t committed = 0;
    std::map<std::uint64_t, std::uint64_t> parts;  // begun, by micro-batch
    std::map<std::uint64_t, std::uint64_t> versions;
    bool busy = false;
  };
  std::map<std::uint32_t, Stage> stages;
  std::set<std::uint32_t> announced;
  const auto complain = [&](const Record& r, const std::string& what) {
    faults.push_back("stage " + std::to_string(r.worker) + " at " + std::to_string(r.at_ns) + " ns: " + what);
  };
  for (const Record& r : trace.records) {
    if (r.kind == EventKind::repartition) {
      if (r.worker == 0) stages.clear();
      stages[r.worker].committed = r.version;
    }
    if (r.kind == EventKind::joined) {
      announced.insert(r.worker);
      stages[r.worker] = {};
      stages[r.worker].committed = r.version;
    }
    if (r.kind == EventKind::left) {
      announced.erase(r.worker);
      stages.erase(r.worker);
    }
    if (r.kind != EventKind::part_began && r.kind != EventKind::part_ended && r.kind != EventKind::committed) continue;
    if (!announced.contains(r.worker)) complain(r, "a task of a stage that was not announced");
    Stage& stage = stages[r.worker];
    if (r.kind == EventKind::part_began) {
      if (stage.busy) complain(r, "two parts at once");
      stage.busy = true;
      if (stage.parts[r.step]++ != r.part) complain(r, "a part out of order");
      if (r.part == 0) {
        stage.versions[r.step] = r.version;
        if (r.version != stage.committed) complain(r, "not the newest parameters");
        if (r.step / micro_batches > stage.committed + ahead) complain(r, "too far ahead");
      } else if (r.version != stage.versions[r.step]) {
        complain(r, "backward with other parameters than forward");
      }
    } else if (r.kind == EventKind::part_ended) {
      stage.busy = false;
    } else {
      const std::uint64_t first = stage.committed * micro_batches;
      const bool last = stage.committed + 1 == mini_batches && last_micros > 0;
      for (std::uint64_t micro = first; micro < first + (last ? last_micros : micro_batches); ++micro)
        if (stage.parts[micro] != 3) complain(r, "committed without all parts of micro-batch " + std::to_string(micro));
      stage.parts.erase(stage.parts.begin(), stage.parts.lower_bound(first));
      if (r.version != ++stage.committed)
        complain(r, "committed " + std::to_string(r.version) + ", not " + std::to_string(stage.committed));
    }
  }
  for (const auto& [number, stage] : stages)
    if (stage.committed != mini_batches)
      faults.push_back("stage " + std::to_string(number) + " has committed " + std::to_string(stage.committed) + " of " +
                       std::to_string(mini_batches));
  if (stages.empty()) faults.emplace_back("there was no stage");
  return faults;
}

}  // namespace real
