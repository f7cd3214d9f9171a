// Tests of the checker of real runs' ledgers with planted faults. With MOTLEY_RUN=FOLDER it checks that run (scripts/chaos.sh).
#include "real_trace.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace real {
namespace {

std::string bytes_of(const std::vector<Record>& records) {
  std::string bytes(trace_header);
  for (Record r : records) {
    const std::size_t end = bytes.size() + trace_record_bytes;
    const auto put = [&](const auto& field) { bytes.append(reinterpret_cast<const char*>(&field), sizeof field); };
    put(r.at_ns);
    put(r.kind);
    visit_fields(r, put);
    bytes.resize(end);
  }
  return bytes;
}

/// A step of `worker`: its lease of one range, which is counted alone in `version`.
void add_step(std::vector<Record>& out, std::uint32_t worker, std::uint64_t step, std::uint64_t version, std::uint32_t epoch,
              std::uint64_t first, std::uint64_t last) {
  out.push_back({.kind = EventKind::ordered, .worker = worker, .step = step, .samples = last - first});
  out.push_back({.kind = EventKind::leased, .worker = worker, .epoch = epoch, .step = step, .first = first, .last = last});
  out.push_back({.kind = EventKind::counted, .worker = worker, .step = step, .version = version, .samples = last - first});
  out.push_back({.kind = EventKind::applied, .version = version, .parts = 1});
}

/// Two epochs of 10 positions in three steps.
std::vector<Record> good_run() {
  std::vector<Record> records;
  add_step(records, 0, 0, 1, 0, 0, 6);
  add_step(records, 1, 0, 2, 0, 6, 10);
  add_step(records, 0, 1, 3, 1, 0, 10);
  return records;
}

std::vector<std::string> faults_of(const std::vector<Record>& records) { return ledger_faults(read_trace(bytes_of(records)), 10, 20); }

TEST(RealTrace, Exact_ledger_has_no_faults) { EXPECT_TRUE(faults_of(good_run()).empty()) << faults_of(good_run()).front(); }

TEST(RealTrace, Finds_a_position_that_is_never_counted) {
  std::vector<Record> records = good_run();
  records.erase(records.begin() + 4, records.begin() + 8);
  EXPECT_FALSE(faults_of(records).empty());
}

TEST(RealTrace, Finds_a_position_that_is_counted_twice) {
  std::vector<Record> records = good_run();
  add_step(records, 2, 0, 4, 0, 5, 6);
  EXPECT_FALSE(faults_of(records).empty());
}

TEST(RealTrace, Finds_a_lease_that_is_counted_twice) {
  std::vector<Record> records = good_run();
  records.push_back({.kind = EventKind::counted, .worker = 0, .step = 1, .version = 4, .samples = 10});
  records.push_back({.kind = EventKind::applied, .version = 4, .parts = 1});
  EXPECT_FALSE(faults_of(records).empty());
}

TEST(RealTrace, ACountWithoutALeaseIsFound) {
  std::vector<Record> records = good_run();
  records.erase(records.begin(), records.begin() + 2);
  EXPECT_FALSE(faults_of(records).empty());
}

TEST(RealTrace, AWrongNumberOfSamplesIsFound) {
  std::vector<Record> records = good_run();
  records[2].samples = 5;
  EXPECT_FALSE(faults_of(records).empty());
}

TEST(RealTrace, ALeaseOfADeadWorkerMayBeCountedForAnother) {
  std::vector<Record> records;
  add_step(records, 0, 0, 1, 0, 0, 6);
  records.push_back({.kind = EventKind::ordered, .worker = 1, .step = 0, .samples = 4});
  records.push_back({.kind = EventKind::leased, .worker = 1, .epoch = 0, .step = 0, .first = 6, .last = 10});
  records.push_back({.kind = EventKind::left, .worker = 1});
  add_step(records, 0, 1, 2, 0, 6, 10);
  add_step(records, 0, 2, 3, 1, 0, 10);
  EXPECT_TRUE(faults_of(records).empty()) << faults_of(records).front();
}

TEST(RealTrace, UpdatesOfARestartedChiefReplaceEarlierOnes) {
  std::vector<Record> records;
  add_step(records, 0, 0, 1, 0, 0, 6);
  add_step(records, 1, 0, 2, 0, 6, 10);
  records.push_back({.kind = EventKind::counted, .worker = 0, .step = 1, .version = 3, .samples = 1});  // its update died with the chief
  add_step(records, 2, 0, 2, 0, 6, 9);
  add_step(records, 2, 1, 3, 0, 9, 10);
  add_step(records, 2, 2, 4, 1, 0, 10);
  EXPECT_TRUE(faults_of(records).empty()) << faults_of(records).front();
}

TEST(RealTrace, AFileOfAnotherVersionIsFound) {
  EXPECT_FALSE(read_trace(std::string_view(bytes_of(good_run())).substr(trace_header.size())).faults.empty());
}

TEST(RealTrace, ATornRecordIsFound) {
  const std::string bytes = bytes_of(good_run());
  EXPECT_FALSE(read_trace(std::string_view(bytes).substr(0, bytes.size() - 1)).faults.empty());
}

TEST(RealTrace, Finds_an_unknown_kind) {
  std::vector<Record> records = good_run();
  records[3].kind = static_cast<EventKind>(16);
  EXPECT_FALSE(faults_of(records).empty());
}

/// Two mini-batches of two micro-batches on one stage, the second of one only.
std::vector<Record> good_pipeline() {
  std::vector<Record> records{{.kind = EventKind::joined}};
  std::uint64_t version = 0;
  for (const std::uint64_t micro : {0U, 1U, 2U}) {
    for (const std::uint8_t part : {0, 1, 2}) {
      records.push_back({.kind = EventKind::part_began, .step = micro, .version = version, .part = part});
      records.push_back({.kind = EventKind::part_ended, .step = micro, .part = part});
    }
    if (micro > 0) records.push_back({.kind = EventKind::committed, .version = ++version});
  }
  return records;
}

TEST(RealTrace, APipelineMayEndWithASmallerMiniBatch) {
  const auto faults = pipeline_faults(read_trace(bytes_of(good_pipeline())), 2, 2, 0, 1);
  EXPECT_TRUE(faults.empty()) << faults.front();
  EXPECT_FALSE(pipeline_faults(read_trace(bytes_of(good_pipeline())), 2, 2, 0).empty()) << "two were expected";
}

TEST(RealTrace, Finds_an_unannounced_stage) {
  std::vector<Record> records = good_pipeline();
  records.erase(records.begin());
  EXPECT_FALSE(pipeline_faults(read_trace(bytes_of(records)), 2, 2, 0, 1).empty());
}

TEST(RealTrace, Finds_a_missing_micro_batch) {
  std::vector<Record> records = good_pipeline();
  records.erase(records.begin() + 7, records.begin() + 13);  // all parts of the second
  EXPECT_FALSE(pipeline_faults(read_trace(bytes_of(records)), 2, 2, 0, 1).empty());
}

std::uint64_t number_in(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

TEST(RealTrace, MotleyRun_has_an_exact_ledger) {
  const char* run = std::getenv("MOTLEY_RUN");
  const std::uint64_t epoch = number_in("MOTLEY_RUN_EPOCH"), total = number_in("MOTLEY_RUN_TOTAL");
  const std::uint64_t mini_batches = number_in("MOTLEY_RUN_MINI_BATCHES");
  if (run == nullptr || epoch == 0 || total == 0)
    GTEST_SKIP() << "MOTLEY_RUN (a folder), MOTLEY_RUN_EPOCH and MOTLEY_RUN_TOTAL (samples) are not set; of a pipeline also "
                    "MOTLEY_RUN_MINI_BATCHES, MOTLEY_RUN_MICRO_BATCHES (of each) and MOTLEY_RUN_AHEAD (updates)";
  const Trace trace = read_trace_file(std::filesystem::path(run) / "trace.bin");
  const auto faults = mini_batches > 0
                          ? pipeline_faults(trace, mini_batches, number_in("MOTLEY_RUN_MICRO_BATCHES"), number_in("MOTLEY_RUN_AHEAD"))
                          : ledger_faults(trace, epoch, total);
  EXPECT_TRUE(faults.empty()) << faults.size() << " faults, the first: " << faults.front();
}

}  // namespace
}  // namespace real
