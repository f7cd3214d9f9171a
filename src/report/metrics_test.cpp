// metrics.jsonl read back by Boost's JSON reader: the content of each line, when the line about the workers is written, hostile names.
#include "report/metrics.h"

#include <gtest/gtest.h>

#include <boost/property_tree/json_parser.hpp>
#include <limits>
#include <sstream>
#include <vector>

#include "report/json_object.h"

namespace motley::report {
namespace {

using Tree = boost::property_tree::ptree;

Tree parsed(const std::string& text) {
  std::istringstream in(text);
  Tree tree;
  boost::property_tree::read_json(in, tree);  // throws where it is not JSON
  return tree;
}

EventNames names() {
  EventNames made;
  made.node = [](std::uint64_t node) { return "node-" + std::string(1, static_cast<char>('a' + node)); };
  made.left = [](std::uint64_t why) { return why == 2 ? "silent_too_long" : "other"; };
  made.finished = [](std::uint64_t why) { return why == 1 ? "time_is_up" : "other"; };
  return made;
}

/// Metrics with all its lines so far, by kind.
struct Written {
  std::vector<std::string> lines;
  Metrics metrics;
  explicit Written(double workers_every_s = 10, EventNames named = names())
      : metrics([this](std::string_view line) { lines.emplace_back(line); }, std::move(named), from_seconds(workers_every_s)) {}

  void tell(double at_s, const trace::EventData& data) { metrics.on_event({at_seconds(at_s), data}); }
  [[nodiscard]] std::vector<Tree> of(const std::string& kind) const {
    std::vector<Tree> found;
    for (const std::string& line : lines) {
      EXPECT_EQ(line.find('\n'), line.size() - 1) << "one line a call: " << line;
      if (Tree tree = parsed(line); tree.get<std::string>("kind") == kind) found.push_back(tree);
    }
    return found;
  }
};

std::string field(const Tree& tree, const std::string& key) { return tree.get<std::string>(key); }
double number(const Tree& tree, const std::string& key) { return tree.get<double>(key); }

std::vector<Tree> workers_of(const Tree& line) {
  std::vector<Tree> all;
  for (const auto& [none, worker] : line.get_child("workers")) all.push_back(worker);
  return all;
}

TEST(Metrics, AnEvaluationIsALineWithTheSpeedSinceTheLast) {
  Written run;
  run.tell(2, trace::Evaluated{.version = {7}, .samples = 1000, .accuracy = 0.5, .loss = 1.25});
  run.tell(6, trace::Evaluated{.version = {9}, .samples = 5000, .accuracy = 0.75, .loss = 0.5});
  const auto lines = run.of("evaluated");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(number(lines[0], "samples_per_second"), 500) << "the first counts from the start";
  EXPECT_EQ(number(lines[1], "time_s"), 6);
  EXPECT_EQ(number(lines[1], "samples"), 5000);
  EXPECT_EQ(number(lines[1], "version"), 9);
  EXPECT_EQ(number(lines[1], "accuracy"), 0.75);
  EXPECT_EQ(number(lines[1], "loss"), 0.5);
  EXPECT_EQ(number(lines[1], "samples_per_second"), 1000);
}

TEST(Metrics, ValuesThatAreNotFiniteAreNull) {
  Written run;
  run.tell(0, trace::Evaluated{.accuracy = std::numeric_limits<double>::quiet_NaN(), .loss = std::numeric_limits<double>::infinity()});
  const auto lines = run.of("evaluated");
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(field(lines[0], "accuracy"), "null");
  EXPECT_EQ(field(lines[0], "loss"), "null");
  EXPECT_EQ(field(lines[0], "samples_per_second"), "null") << "no time has passed";
}

TEST(Metrics, JoinedAndLeftHaveNodeAndReason) {
  Written run;
  run.tell(1, trace::Joined{.worker = {3}, .node = 1});
  run.tell(4, trace::Left{.worker = {3}, .why = 2});
  run.tell(5, trace::Left{.worker = {8}, .why = 2});  // never joined
  const auto joined = run.of("joined");
  const auto left = run.of("left");
  ASSERT_EQ(joined.size(), 1U);
  EXPECT_EQ(field(joined[0], "worker"), "3");
  EXPECT_EQ(field(joined[0], "node"), "node-b");
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(number(left[0], "time_s"), 4);
  EXPECT_EQ(field(left[0], "worker"), "3");
  EXPECT_EQ(field(left[0], "node"), "node-b");
  EXPECT_EQ(field(left[0], "reason"), "silent_too_long");
}

TEST(Metrics, UsesNumbersWithoutNames) {
  Written run(10, {});
  run.tell(1, trace::Joined{.worker = {0}, .node = 12});
  run.tell(2, trace::Left{.worker = {0}, .why = 3});
  EXPECT_EQ(field(run.of("left")[0], "node"), "12");
  EXPECT_EQ(field(run.of("left")[0], "reason"), "3");
}

TEST(Metrics, WritesAboutWorkersAtMultiplesOfTheInterval) {
  Written run(10);
  run.tell(0, trace::Joined{.worker = {0}, .node = 0});
  run.tell(5, trace::Joined{.worker = {1}, .node = 1});
  run.tell(6, trace::Counted{.worker = {0}, .samples = 100, .staleness = 2});
  run.tell(7, trace::Counted{.worker = {0}, .samples = 100, .staleness = 5});
  run.tell(8, trace::Counted{.worker = {1}, .samples = 50, .staleness = 0});
  run.tell(9.999, trace::Applied{});
  EXPECT_TRUE(run.of("workers").empty()) << "not yet due";
  run.tell(10, trace::Counted{.worker = {0}, .samples = 30, .staleness = 1});
  ASSERT_EQ(run.of("workers").size(), 1U);
  EXPECT_EQ(number(run.of("workers")[0], "time_s"), 10);
  auto workers = workers_of(run.of("workers")[0]);
  ASSERT_EQ(workers.size(), 2U);
  EXPECT_EQ(field(workers[0], "worker"), "0");
  EXPECT_EQ(field(workers[0], "node"), "node-a");
  EXPECT_EQ(number(workers[0], "samples"), 200);
  EXPECT_EQ(number(workers[0], "samples_per_second"), 20);
  EXPECT_EQ(number(workers[0], "staleness_mean"), 3.5);
  EXPECT_EQ(number(workers[1], "samples_per_second"), 10) << "50 samples since it joined, 5 s ago";

  run.tell(20, trace::Applied{});
  workers = workers_of(run.of("workers")[1]);
  EXPECT_EQ(number(workers[0], "samples"), 230) << "since it joined";
  EXPECT_EQ(number(workers[0], "samples_per_second"), 3) << "since the last line";
  EXPECT_EQ(number(workers[0], "staleness_mean"), 1) << "since the last line";
  EXPECT_EQ(field(workers[1], "staleness_mean"), "null") << "no contribution of it was counted";
}

TEST(Metrics, ATimeWithoutEventsYieldsOneLine) {
  Written run(1);
  run.tell(0, trace::Joined{.worker = {0}});
  run.tell(0.5, trace::Counted{.worker = {0}, .samples = 100});
  run.tell(50.25, trace::Applied{});
  run.tell(50.5, trace::Applied{});
  ASSERT_EQ(run.of("workers").size(), 1U);
  EXPECT_EQ(number(run.of("workers")[0], "time_s"), 50);
  EXPECT_EQ(number(workers_of(run.of("workers")[0])[0], "samples_per_second"), 2);
}

TEST(Metrics, ALateEventDoesNotMoveTimeBack) {
  Written run(10);
  run.tell(0, trace::Joined{.worker = {0}});
  run.tell(20.1, trace::Applied{});
  run.tell(19.9, trace::ComputeBegan{.worker = {0}});  // reported with its contribution
  run.tell(20.2, trace::Applied{});
  EXPECT_EQ(run.of("workers").size(), 1U);
}

TEST(Metrics, HasTheStateOfEachWorker) {
  const std::vector<std::pair<trace::EventData, std::string>> states{{trace::Leased{}, "waiting"},
                                                                     {trace::Released{}, "receiving"},
                                                                     {trace::Ordered{}, "receiving"},
                                                                     {trace::ComputeBegan{}, "computing"},
                                                                     {trace::ComputeEnded{}, "sending"},
                                                                     {trace::Contributed{}, "waiting"},
                                                                     {trace::Held{}, "held"},
                                                                     {trace::Idled{}, "resting"},
                                                                     {trace::Dropped{}, "waiting"}};
  Written run(1);
  run.tell(0, trace::Joined{.worker = {0}});
  double now = 0;
  for (const auto& [event, state] : states) {
    run.tell(now + 0.5, event);
    run.tell(now += 1, trace::Applied{});
    EXPECT_EQ(field(workers_of(run.of("workers").back())[0], "state"), state) << trace::name_of(event);
  }
}

TEST(Metrics, DoesNotListWorkersThatLeft) {
  Written run(1);
  run.tell(0, trace::Joined{.worker = {0}});
  run.tell(0, trace::Joined{.worker = {1}});
  run.tell(0.5, trace::Left{.worker = {0}});
  run.tell(0.6, trace::Counted{.worker = {0}, .samples = 10});
  run.tell(1, trace::Applied{});
  const auto workers = workers_of(run.of("workers")[0]);
  ASSERT_EQ(workers.size(), 1U);
  EXPECT_EQ(field(workers[0], "worker"), "1");
  EXPECT_EQ(number(workers[0], "samples"), 0);
}

TEST(Metrics, TheEndHasWorkersAndReason) {
  Written run(10);
  run.tell(0, trace::Joined{.worker = {0}});
  run.tell(12, trace::Counted{.worker = {0}, .samples = 100});
  run.tell(14, trace::Finished{.why = 1, .samples = 100});
  ASSERT_EQ(run.of("workers").size(), 2U);
  EXPECT_EQ(number(workers_of(run.of("workers")[1])[0], "samples_per_second"), 25);
  ASSERT_EQ(run.of("finished").size(), 1U);
  EXPECT_EQ(field(run.of("finished")[0], "reason"), "time_is_up");
  EXPECT_EQ(number(run.of("finished")[0], "samples"), 100);
  EXPECT_EQ(run.lines.back().find("{\"kind\":\"finished\""), 0U) << "last";
}

TEST(Metrics, ATimeThatDecreasesGivesNoSpeed) {
  Written run(10);
  run.tell(10.5, trace::Joined{.worker = {0}});
  run.tell(10.5, trace::Counted{.worker = {0}, .samples = 5});
  run.tell(10.25, trace::Finished{});  // by a clock that is behind
  EXPECT_EQ(field(workers_of(run.of("workers").back())[0], "samples_per_second"), "null");
}

TEST(JsonObject, HostileTextIsReadBackHarmless) {
  EXPECT_EQ(JsonObject{}.text("key", "a\"b\\c\nd\x01\xff").str(), R"({"key":"a\"b\\c d??"})");
  EXPECT_EQ(parsed(JsonObject{}.text("key", "\"},{\"x\":1").str()).get<std::string>("key"), "\"},{\"x\":1");
  EXPECT_EQ(JsonObject{}.text("key", "größe").str(), "{\"key\":\"größe\"}");
}

TEST(JsonObject, NumbersAreReadBackAsTheyWere) {
  for (const double value : {0.1, 1.0 / 3, 1e-300, -12345678.9, 1e21})
    EXPECT_EQ(parsed(JsonObject{}.number("x", value).str()).get<double>("x"), value);
  EXPECT_EQ(JsonObject{}.count("n", std::numeric_limits<std::uint64_t>::max()).str(), R"({"n":18446744073709551615})");
  EXPECT_EQ(JsonObject{}.str(), "{}");
}

}  // namespace
}  // namespace motley::report
