// trace.json read back by Boost's JSON reader: rows, stretches, marks and curves; a file cut off anywhere; events out of order.
#include "report/chrome_trace.h"

#include <gtest/gtest.h>

#include <boost/property_tree/json_parser.hpp>
#include <limits>
#include <sstream>
#include <vector>

#include "base/check.h"

namespace motley::report {
namespace {

using trace::Event;
using Tree = boost::property_tree::ptree;

std::vector<Tree> parsed(const std::string& text) {
  std::istringstream in(text);
  Tree tree;
  boost::property_tree::read_json(in, tree);  // throws where it is not JSON
  std::vector<Tree> events;
  for (const auto& [none, event] : tree) events.push_back(event);
  return events;
}

EventNames names() {
  EventNames made;
  made.node = [](std::uint64_t node) { return "node-" + std::string(1, static_cast<char>('a' + node)); };
  made.left = [](std::uint64_t why) { return why == 1 ? "connection_lost" : "other"; };
  made.decided = [](std::uint64_t why) { return why == 8 ? "others_computing" : why == 1 ? "barrier_complete" : "first_order"; };
  made.finished = [](std::uint64_t why) { return why == 0 ? "every_sample_counted" : "other"; };
  made.fault = [](std::uint64_t kind) { return kind == 0 ? "kill" : "other"; };
  return made;
}

/// A trace with all that it has written so far.
struct Written {
  std::vector<std::string> pieces;
  ChromeTrace trace;
  explicit Written(EventNames named = names()) : trace([this](std::string_view piece) { pieces.emplace_back(piece); }, std::move(named)) {}

  void tell(double at_s, const trace::EventData& data) { trace.on_event({at_seconds(at_s), data}); }
  [[nodiscard]] std::string text() const {
    std::string all;
    for (const std::string& piece : pieces) all += piece;
    return all;
  }
  /// Of one phase ("X", "i", "C", "M") and, unless it is empty, one name. For a trace that is finished or not.
  [[nodiscard]] std::vector<Tree> of(const std::string& phase, const std::string& name = {}) const {
    std::vector<Tree> found;
    const std::string all = text();
    for (const Tree& event : parsed(all.ends_with("]\n") ? all : all + "]"))
      if (event.get<std::string>("ph") == phase && (name.empty() || event.get<std::string>("name") == name)) found.push_back(event);
    return found;
  }
};

std::string field(const Tree& tree, const std::string& key) { return tree.get<std::string>(key); }

/// "name row ts dur step samples why", times as they are written.
std::string stretch(const Tree& event) {
  std::string out = field(event, "name");
  for (const char* key : {"tid", "ts", "dur", "args.step", "args.samples"}) out += " " + field(event, key);
  if (const auto why = event.get_optional<std::string>("args.why")) out += " " + *why;
  return out;
}

std::vector<std::string> stretches(const Written& run) {
  std::vector<std::string> all;
  for (const Tree& event : run.of("X")) all.push_back(stretch(event));
  return all;
}

/// One worker: waits 1 s, receives 1, computes 2, sends 0.5, is held 1.5, receives again.
void one_round(Written& run) {
  run.tell(1, trace::Joined{.worker = {2}, .node = 1});
  run.tell(2, trace::Ordered{.worker = {2}, .step = {1}, .samples = 32});
  run.tell(2, trace::Released{.worker = {2}, .step = {1}, .why = 0});
  run.tell(3, trace::ComputeBegan{.worker = {2}, .step = {1}});
  run.tell(5, trace::ComputeEnded{.worker = {2}, .step = {1}, .samples = 32});
  run.tell(5.5, trace::Contributed{.worker = {2}, .step = {1}, .samples = 32});
  run.tell(5.5, trace::Held{.worker = {2}, .why = 8});
  run.tell(7, trace::Released{.worker = {2}, .step = {2}, .why = 1});
  run.tell(7, trace::Ordered{.worker = {2}, .step = {2}, .samples = 48});
}

TEST(ChromeTrace, StretchesHavePhaseStepSamplesAndReason) {
  Written run;
  one_round(run);
  run.tell(7.25, trace::ComputeBegan{.worker = {2}, .step = {2}});
  EXPECT_EQ(stretches(run), (std::vector<std::string>{
                                "wait 3 1000000.000 1000000.000 0 0",
                                "receive 3 2000000.000 1000000.000 1 32 first_order",
                                "compute 3 3000000.000 2000000.000 1 32",
                                "send 3 5000000.000 500000.000 1 32",
                                "wait 3 5500000.000 1500000.000 1 32 others_computing",
                                "receive 3 7000000.000 250000.000 2 48 barrier_complete",
                            }));
}

TEST(ChromeTrace, TimesAreExactToTheNanosecond) {
  Written run;
  Event event{Instant{Duration{9'007'199'254'740'993'001}}, trace::Applied{}};
  run.trace.on_event(event);
  EXPECT_NE(run.text().find("\"ts\":9007199254740993.001,"), std::string::npos) << run.text();
  event.at = Instant{Duration{-1'500}};
  run.trace.on_event(event);
  EXPECT_NE(run.text().find("\"ts\":-1.500,"), std::string::npos) << run.text();
}

TEST(ChromeTrace, OneProcessHasOneNamedRowPerWorker) {
  Written run;
  run.tell(0, trace::Joined{.worker = {0}, .node = 0});
  run.tell(0, trace::Joined{.worker = {1}, .node = 1});
  run.tell(3, trace::Left{.worker = {0}, .why = 1});
  run.tell(5, trace::Joined{.worker = {2}, .node = 0});  // the same node again
  ASSERT_EQ(run.of("M", "process_name").size(), 1U);
  EXPECT_EQ(field(run.of("M", "process_name")[0], "args.name"), "cluster");
  const auto rows = run.of("M", "thread_name");
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(field(rows[0], "tid") + field(rows[0], "args.name"), "1node-a (worker 0)");
  EXPECT_EQ(field(rows[1], "tid") + field(rows[1], "args.name"), "2node-b (worker 1)");
  EXPECT_EQ(field(rows[2], "tid") + field(rows[2], "args.name"), "3node-a (worker 2)");
  EXPECT_EQ(run.of("M", "thread_sort_index").size(), 3U);
}

TEST(ChromeTrace, JoinsAndLeavesAreMarksOnTheRow) {
  Written run;
  one_round(run);
  run.tell(8, trace::Left{.worker = {2}, .why = 1});
  run.tell(9, trace::ComputeBegan{.worker = {2}, .step = {2}});  // it has left already
  run.trace.finish();
  ASSERT_EQ(run.of("i", "joined").size(), 1U);
  EXPECT_EQ(field(run.of("i", "joined")[0], "args.node"), "node-b");
  ASSERT_EQ(run.of("i", "left").size(), 1U);
  EXPECT_EQ(field(run.of("i", "left")[0], "args.reason"), "connection_lost");
  EXPECT_EQ(field(run.of("i", "left")[0], "s"), "t");
  EXPECT_EQ(field(run.of("i", "left")[0], "tid"), "3");
  EXPECT_EQ(stretches(run).back(), "receive 3 7000000.000 1000000.000 2 48 barrier_complete");
}

TEST(ChromeTrace, UpdatesEvaluationsFaultsAndTheEndAreGlobalMarks) {
  Written run;
  run.tell(1, trace::Applied{.version = {5}, .parts = 4, .rate = 0.05});
  run.tell(2, trace::Evaluated{.version = {5}, .samples = 600, .accuracy = 0.75, .loss = 0.5});
  run.tell(3, trace::FaultInjected{.node = 1, .kind = 0});
  run.tell(4, trace::Finished{.why = 0, .samples = 600});
  const Tree update = run.of("i", "update").at(0);
  EXPECT_EQ(field(update, "args.version") + " " + field(update, "args.parts") + " " + field(update, "args.rate"), "5 4 0.05");
  const Tree evaluation = run.of("i", "evaluation").at(0);
  EXPECT_EQ(field(evaluation, "args.samples") + " " + field(evaluation, "args.accuracy") + " " + field(evaluation, "args.loss"),
            "600 0.75 0.5");
  const Tree fault = run.of("i", "kill node-b").at(0);
  EXPECT_EQ(field(fault, "cat"), "fault");
  EXPECT_EQ(field(run.of("i", "finished").at(0), "args.reason"), "every_sample_counted");
  for (const Tree& mark : run.of("i")) EXPECT_EQ(field(mark, "s"), "p");
}

TEST(ChromeTrace, AccuracyLossAndStalenessAreCurves) {
  Written run;
  run.tell(1, trace::Counted{.worker = {0}, .staleness = 3});
  run.tell(2, trace::Evaluated{.accuracy = 0.75, .loss = 0.5});
  EXPECT_EQ(field(run.of("C", "staleness").at(0), "args.staleness"), "3");
  EXPECT_EQ(field(run.of("C", "accuracy").at(0), "args.accuracy"), "0.75");
  EXPECT_EQ(field(run.of("C", "loss").at(0), "args.loss"), "0.5");
  EXPECT_EQ(field(run.of("C", "loss").at(0), "ts"), "2000000.000");
}

TEST(ChromeTrace, ACurveHasNoPointForNaN) {
  Written run;
  run.tell(2, trace::Evaluated{.accuracy = 0.75, .loss = std::numeric_limits<double>::quiet_NaN()});
  EXPECT_EQ(run.of("C", "accuracy").size(), 1U);
  EXPECT_TRUE(run.of("C", "loss").empty());
  EXPECT_EQ(field(run.of("i", "evaluation").at(0), "args.loss"), "null");
}

TEST(ChromeTrace, ADroppedContributionIsAMarkAndTheWorkerWaits) {
  Written run;
  run.tell(0, trace::Joined{.worker = {0}});
  run.tell(0, trace::ComputeBegan{.worker = {0}, .step = {1}});
  run.tell(2, trace::ComputeEnded{.worker = {0}, .step = {1}, .samples = 8});
  run.tell(3, trace::Dropped{.worker = {0}, .step = {1}, .why = 8});
  run.tell(3, trace::Idled{.worker = {0}});
  run.tell(5, trace::Finished{});
  EXPECT_EQ(field(run.of("i", "dropped").at(0), "args.reason"), "others_computing");
  EXPECT_EQ(stretches(run).back(), "wait 1 3000000.000 2000000.000 1 8 idled");
}

TEST(ChromeTrace, IsADocumentAfterEveryPiece) {
  Written run;
  one_round(run);
  run.tell(8, trace::Evaluated{.accuracy = 0.5});
  run.trace.finish();
  std::string so_far;
  for (std::size_t i = 0; i + 1 < run.pieces.size(); ++i) {
    so_far += run.pieces[i];
    EXPECT_NO_THROW(parsed(so_far + "]")) << so_far;
    EXPECT_EQ(parsed(so_far + "]").size(), i + 1) << "a piece is an event";
  }
  EXPECT_NO_THROW(parsed(run.text())) << "with its own end";
}

TEST(ChromeTrace, IsADocumentWithoutEvents) {
  Written run;
  run.trace.finish();
  EXPECT_EQ(parsed(run.text()).size(), 1U);
}

TEST(ChromeTrace, FinishEndsStretchesAtTheLatestTime) {
  Written run;
  run.tell(0, trace::Joined{.worker = {0}});
  run.tell(1, trace::ComputeBegan{.worker = {0}, .step = {1}});
  run.tell(4, trace::Applied{});
  run.tell(3, trace::Counted{});  // late
  run.trace.finish();
  EXPECT_EQ(stretches(run).back(), "compute 1 1000000.000 3000000.000 1 0");
  EXPECT_THROW(run.tell(5, trace::Applied{}), Bug);
  EXPECT_THROW(run.trace.finish(), Bug);
}

TEST(ChromeTrace, WorkersOutOfOrderHaveTheirOwnTimes) {
  Written run;
  run.tell(0, trace::Joined{.worker = {0}, .node = 0});
  run.tell(0, trace::Joined{.worker = {1}, .node = 1});
  run.tell(0, trace::Released{.worker = {0}, .step = {1}});
  run.tell(0, trace::Released{.worker = {1}, .step = {1}});
  // worker 1's times arrive first, though worker 0 began before
  run.tell(2, trace::ComputeBegan{.worker = {1}, .step = {1}});
  run.tell(6, trace::ComputeEnded{.worker = {1}, .step = {1}, .samples = 4});
  run.tell(1, trace::ComputeBegan{.worker = {0}, .step = {1}});
  run.tell(5, trace::ComputeEnded{.worker = {0}, .step = {1}, .samples = 8});
  EXPECT_EQ(stretches(run), (std::vector<std::string>{
                                "receive 2 0.000 2000000.000 1 0 first_order",
                                "compute 2 2000000.000 4000000.000 1 4",
                                "receive 1 0.000 1000000.000 1 0 first_order",
                                "compute 1 1000000.000 4000000.000 1 8",
                            }));
}

TEST(ChromeTrace, NoStretchHasANegativeLength) {
  Written run;
  run.tell(5, trace::Joined{.worker = {0}});
  run.tell(5, trace::Released{.worker = {0}, .step = {1}});
  run.tell(4, trace::Finished{});  // the chief's clock was behind
  EXPECT_TRUE(run.of("X").empty());
}

TEST(ChromeTrace, HostileNamesStayInsideTheirQuotes) {
  EventNames hostile = names();
  hostile.node = [](std::uint64_t) { return std::string("\"}]\\\n\xff"); };
  Written run(hostile);
  run.tell(0, trace::Joined{.worker = {0}});
  run.trace.finish();
  EXPECT_EQ(field(run.of("i", "joined").at(0), "args.node"), "\"}]\\ ?");
}

}  // namespace
}  // namespace motley::report
