// A worker: its actions in each state after each event, and the events that it ignores.
#include "protocol/worker.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>

#include "base/match.h"

namespace motley::protocol {
namespace {

constexpr WorkerId me{3};
constexpr WorkerId another_worker{9};

Lease lease_of(std::uint64_t samples) {
  Lease lease;
  lease.ranges.push_back({0, 0, samples});
  return lease;
}

std::string describe(const WorkerAction& action) {
  return std::visit(
      match{[](const Send& send) {
              return std::visit(match{[](const wire::Hello& m) { return fmt::format("hello {}", m.attempt); },
                                      [](const wire::Heartbeat& m) { return fmt::format("heartbeat w{}", m.worker.value); },
                                      [](const wire::Leaving& m) { return fmt::format("leaving w{}", m.worker.value); },
                                      [&](const wire::Push& m) { return fmt::format("push {} to s{}", m.slice.value, send.to.id); },
                                      [](const wire::Contributed& m) {
                                        return fmt::format("contributed {} base v{} samples {}", m.step.value, m.base.value,
                                                           m.report.samples);
                                      },
                                      [](const auto&) { return std::string("a message that a worker does not send"); }},
                                send.message);
            },
            [](const Compute& compute) { return fmt::format("compute {} at v{}", compute.order.step.value, compute.base.value); },
            [](const Abandon&) { return std::string("abandon"); }, [](const Quit&) { return std::string("quit"); },
            [](const AwaitDevice&) { return std::string("await the device"); }},
      action);
}

/// The announcement of a step, which precedes each computation.
bool announces(const WorkerAction& action) {
  const auto* send = std::get_if<Send>(&action);
  return send != nullptr && std::holds_alternative<wire::Began>(send->message);
}

/// A model of three slices on two servers.
struct Harness {
  Worker worker{{"node", {ServerId{0}, ServerId{1}, ServerId{0}}, from_seconds(1), from_seconds(5)}};
  Instant now{};

  std::string step(const WorkerEvent& event) {
    WorkerActions actions;
    worker.step(now, event, actions);
    std::string text;
    for (const WorkerAction& action : actions)
      if (!announces(action)) text += (text.empty() ? "" : ", ") + describe(action);
    return text;
  }
  std::string receive(const wire::Message& message) { return step(Arrived{message}); }
  std::string receive_order(std::uint64_t at, WorkerId whose = me) {
    return receive(wire::Order{whose, Step{at}, Step{at}, Version{at}, 1, 0.1, 32, {}, {}, 1, lease_of(20)});
  }
  std::string receive_slice(std::uint64_t at, std::uint32_t slice, WorkerId whose = me) {
    return receive(wire::Pulled{whose, Step{at}, Version{at + 100}, SliceId{slice}, 32});
  }
  std::string receive_slices(std::uint64_t at) { return receive_slice(at, 0) + receive_slice(at, 1) + receive_slice(at, 2); }
  std::string at(double seconds, const WorkerEvent& event) {
    now = at_seconds(seconds);
    return step(event);
  }

  // Ways to reach each state.
  Harness& outside() { return step(Started{}), *this; }
  Harness& waiting() { return outside().receive(wire::Welcome{me, 1}), *this; }
  Harness& computing() { return waiting().receive_order(1), receive_slices(1), *this; }
  Harness& over() { return waiting().receive(wire::Stop{}), *this; }
};

TEST(Worker, Announces_that_a_step_begins) {
  Harness h;
  h.waiting().receive_order(1);
  h.receive_slice(1, 0);
  h.receive_slice(1, 1);
  WorkerActions actions;
  h.worker.step(h.now, Arrived{wire::Pulled{me, Step{1}, Version{101}, SliceId{2}, 32}}, actions);
  ASSERT_EQ(actions.size(), 2U);
  ASSERT_TRUE(announces(actions[0]));
  EXPECT_EQ(std::get<wire::Began>(std::get<Send>(actions[0]).message).step, Step{1});
}

TEST(Worker, Computes_the_next_order_while_the_first_is_sent) {
  Harness h;
  h.computing();
  EXPECT_EQ(h.receive_order(2), "") << "one at a time";
  EXPECT_EQ(h.receive_slices(2), "");
  EXPECT_EQ(h.step(Computed{.step = Step{1}, .report = {.loss_sum = 2, .squared_norm = 3, .compute = from_seconds(1)}}),
            "push 0 to s0, push 1 to s1, push 2 to s0, contributed 1 base v101 samples 20, compute 2 at v102");
}

TEST(Worker, Reuses_parameters_when_ordered) {
  Harness h;
  h.computing();
  EXPECT_EQ(h.receive(wire::Order{me, Step{2}, Step{1}, Version{1}, 1, 0.1, 32, {}, {}, 1, lease_of(20)}), "");
  EXPECT_EQ(h.step(Computed{.step = Step{1}, .report = {.loss_sum = 2, .squared_norm = 3, .compute = from_seconds(1)}}),
            "push 0 to s0, push 1 to s1, push 2 to s0, contributed 1 base v101 samples 20, compute 2 at v101");
}

TEST(Worker, Next_step_is_known_once_it_could_begin) {
  Harness h;
  h.waiting();
  EXPECT_EQ(h.worker.next_step(), nullptr);
  h.receive_order(1), h.receive_slices(1);
  EXPECT_EQ(h.worker.next_step(), nullptr) << "it computes that one now";
  h.receive_order(2);
  EXPECT_EQ(h.worker.next_step(), nullptr);
  h.receive_slice(2, 0), h.receive_slice(2, 1);
  EXPECT_EQ(h.worker.next_step(), nullptr) << "one slice is missing";
  h.receive_slice(2, 2);
  ASSERT_NE(h.worker.next_step(), nullptr);
  EXPECT_EQ(h.worker.next_step()->step, Step{2});
  h.receive(wire::Cancel{me, Step{2}});
  EXPECT_EQ(h.worker.next_step(), nullptr) << "cancelled";
}

TEST(Worker, Reports_the_transfer_time_of_parameters) {
  Harness h;
  h.waiting();
  h.now = at_seconds(10);
  h.receive_order(1);
  h.now = at_seconds(12);
  h.receive_slices(1);
  WorkerActions actions;
  h.worker.step(at_seconds(20), Computed{.step = Step{1}, .report = {.loss_sum = 2, .squared_norm = 3, .compute = from_seconds(1)}},
                actions);
  EXPECT_EQ(std::get<wire::Contributed>(std::get<Send>(actions.back()).message).report.pull, from_seconds(2));
}

TEST(Worker, Reports_the_samples_done_at_the_time_limit) {
  Harness h;
  h.computing();
  const Computed cut{.step = Step{1}, .report = {.samples = 7, .compute = from_seconds(1)}};
  EXPECT_EQ(h.step(cut), "push 0 to s0, push 1 to s1, push 2 to s0, contributed 1 base v101 samples 7");
}

TEST(Worker, Computes_a_step) {
  Harness h;
  EXPECT_EQ(h.step(Started{}), "hello 1");
  EXPECT_EQ(h.receive(wire::Welcome{me, 1}), "");
  EXPECT_EQ(h.worker.id(), me);
  EXPECT_EQ(h.receive_order(1), "");
  EXPECT_EQ(h.receive_slices(1), "compute 1 at v101");
  EXPECT_EQ(h.step(Computed{.step = Step{1}, .report = {.loss_sum = 2, .squared_norm = 3, .compute = from_seconds(1)}}),
            "push 0 to s0, push 1 to s1, push 2 to s0, contributed 1 base v101 samples 20");
  EXPECT_EQ(h.receive_order(2), "");
  EXPECT_EQ(h.receive_slices(2), "compute 2 at v102");
}

TEST(Worker, Parameters_may_arrive_before_the_order) {
  Harness h;
  h.waiting();
  EXPECT_EQ(h.receive_slices(1), "");
  EXPECT_EQ(h.receive_order(1), "compute 1 at v101");
}

TEST(Worker, Parameters_may_arrive_before_the_Welcome) {
  Harness h;
  h.outside();
  EXPECT_EQ(h.receive_slices(1), "");
  h.receive(wire::Welcome{me, 1});
  EXPECT_EQ(h.receive_order(1), "compute 1 at v101");
}

TEST(Worker, Parameters_of_an_earlier_membership_are_ignored) {
  Harness h;
  h.outside();
  h.receive_slice(1, 0, WorkerId{2});
  h.receive(wire::Welcome{me, 1});
  h.receive_order(1);
  EXPECT_EQ(h.receive_slice(1, 1) + h.receive_slice(1, 2), "");
  EXPECT_EQ(h.receive_slice(1, 0), "compute 1 at v101");
}

TEST(Worker, Reports_the_computed_step_to_the_chief) {
  Harness h;
  h.computing();
  WorkerActions actions;
  h.worker.step(h.now, Computed{.step = Step{1}, .report = {.loss_sum = 2, .squared_norm = 3, .finite = false, .compute = from_seconds(4)}},
                actions);
  const auto& reported = std::get<wire::Contributed>(std::get<Send>(actions.back()).message);
  EXPECT_EQ(reported.worker, me);
  EXPECT_EQ(reported.report.loss_sum, 2.0);
  EXPECT_EQ(reported.report.squared_norm, 3.0);
  EXPECT_FALSE(reported.report.finite);
  EXPECT_EQ(reported.report.compute, from_seconds(4));
  EXPECT_EQ(reported.report.local_steps, 1U);
}

// Every state and every event.

struct Case {
  std::string event;
  std::array<std::string, 4> answers;  // outside, waiting, computing, over
};

std::string tell(Harness& h, const std::string& event) {
  if (event == "started") return h.step(Started{});
  if (event == "welcome") return h.receive(wire::Welcome{me, 1});
  if (event == "welcome to an earlier hello") return h.receive(wire::Welcome{another_worker, 0});
  if (event == "order") return h.receive_order(1);
  if (event == "another's order") return h.receive_order(1, another_worker);
  if (event == "slice") return h.receive_slice(1, 0);
  if (event == "another's slice") return h.receive_slice(1, 0, another_worker);
  if (event == "fenced") return h.receive(wire::Fenced{me});
  if (event == "another fenced") return h.receive(wire::Fenced{another_worker});
  if (event == "stop") return h.receive(wire::Stop{});
  if (event == "computed") return h.step(Computed{.step = Step{1}});
  if (event == "computed something else") return h.step(Computed{.step = Step{7}});
  if (event == "no time passed") return h.step(TimePassed{});
  if (event == "a second passed") return h.at(1, TimePassed{});
  if (event == "five seconds passed") return h.at(5, TimePassed{});
  if (event == "device free") return h.step(DeviceFree{});
  if (event == "asked to leave") return h.step(AskedToLeave{});
  if (event == "a server's message") return h.receive(wire::Discard{me, Step{1}});
  return "an event that the test does not know";
}

TEST(Worker, Handles_every_event_in_every_state) {
  const std::string pushed = "push 0 to s0, push 1 to s1, push 2 to s0, contributed 1 base v101 samples 20";
  const std::vector<Case> table{
      {"started", {"hello 2", "hello 2", "hello 2", ""}},
      {"welcome", {"", "", "", ""}},
      {"welcome to an earlier hello", {"", "", "", ""}},
      {"order", {"", "", "", ""}},
      {"another's order", {"", "", "", ""}},
      {"slice", {"", "", "", ""}},
      {"another's slice", {"", "", "", ""}},
      {"fenced", {"", "abandon, await the device", "abandon, await the device", ""}},
      {"device free", {"", "", "", ""}},
      {"another fenced", {"", "", "", ""}},
      {"stop", {"abandon, quit", "abandon, quit", "abandon, quit", ""}},
      {"computed", {"", "", pushed, ""}},
      {"computed something else", {"", "", "", ""}},
      {"no time passed", {"", "", "", ""}},
      {"a second passed", {"", "heartbeat w3", "heartbeat w3", ""}},
      {"five seconds passed", {"hello 2", "heartbeat w3", "heartbeat w3", ""}},
      {"asked to leave", {"abandon, quit", "leaving w3, abandon, quit", "leaving w3, abandon, quit", ""}},
      {"a server's message", {"", "", "", ""}},
  };
  for (const Case& row : table) {
    SCOPED_TRACE(row.event);
    EXPECT_EQ(tell(Harness{}.outside(), row.event), row.answers[0]) << "outside";
    EXPECT_EQ(tell(Harness{}.waiting(), row.event), row.answers[1]) << "waiting";
    EXPECT_EQ(tell(Harness{}.computing(), row.event), row.answers[2]) << "computing";
    EXPECT_EQ(tell(Harness{}.over(), row.event), row.answers[3]) << "over";
  }
}

TEST(Worker, Slices_of_an_earlier_step_are_ignored) {
  Harness h;
  h.computing().step(Computed{.step = Step{1}});
  h.receive_order(2);
  h.receive_slice(2, 0);
  EXPECT_EQ(h.receive_slice(1, 1), "");
  h.receive_slice(2, 1);
  EXPECT_EQ(h.receive_slice(2, 2), "compute 2 at v102");
}

TEST(Worker, Hello_is_repeated_and_the_last_answer_counts) {
  Harness h;
  h.outside();
  EXPECT_EQ(h.at(4.9, TimePassed{}), "");
  EXPECT_EQ(h.at(5.0, TimePassed{}), "hello 2");
  EXPECT_EQ(h.at(9.9, TimePassed{}), "");
  h.receive(wire::Welcome{another_worker, 1});
  EXPECT_FALSE(h.worker.id()) << "the answer to the first Hello, which the second has replaced";
  h.receive(wire::Welcome{me, 2});
  EXPECT_EQ(h.worker.id(), me);
}

TEST(Worker, Fenced_while_computing_it_abandons_and_rejoins) {
  Harness h;
  h.computing();
  EXPECT_EQ(h.receive(wire::Fenced{me}), "abandon, await the device");
  EXPECT_EQ(h.step(DeviceFree{}), "hello 2");
  EXPECT_EQ(h.step(Computed{.step = Step{1}}), "") << "the result of the former membership is ignored";
  h.receive(wire::Welcome{WorkerId{4}, 2});
  EXPECT_EQ(h.receive_slice(1, 0), "") << "slices for the old id";
  EXPECT_EQ(h.receive_order(1), "") << "an order for the old id";
  EXPECT_EQ(h.receive_order(1, WorkerId{4}), "");
  EXPECT_EQ(h.receive_slice(1, 0, WorkerId{4}) + h.receive_slice(1, 1, WorkerId{4}) + h.receive_slice(1, 2, WorkerId{4}),
            "compute 1 at v101");
}

TEST(Worker, Fenced_it_rejoins_only_when_its_device_is_free) {
  Harness h;
  h.computing();
  h.receive(wire::Fenced{me});
  EXPECT_EQ(h.at(100, TimePassed{}), "") << "a Hello now would only cause another order for a hung device";
  EXPECT_EQ(h.receive(wire::Welcome{me, 1}) + h.receive_order(2), "") << "the former membership has ended";
  EXPECT_EQ(h.step(DeviceFree{}), "hello 2");
  EXPECT_EQ(h.step(DeviceFree{}), "") << "once";
}

TEST(Worker, Sends_heartbeats_only_without_other_messages) {
  Harness h;
  h.computing();
  EXPECT_EQ(h.at(1.0, TimePassed{}), "heartbeat w3");
  EXPECT_EQ(h.at(1.9, TimePassed{}), "");
  h.at(1.9, Computed{.step = Step{1}});
  EXPECT_EQ(h.at(2.5, TimePassed{}), "") << "it sent a message at 1.9";
  EXPECT_EQ(h.at(2.9, TimePassed{}), "heartbeat w3");
}

TEST(Worker, HelloCarriesNodeIndexAndDeviceProfile) {
  WorkerOptions options{"node", {ServerId{0}}};
  options.profile = {.cost = {0.01, 1e-4}, .max_batch = 17, .batch_multiple = 4, .transfer_s_per_byte = 0, .bytes_per_value = 2};
  options.node_index = 3;
  Worker worker(options);
  WorkerActions out;
  worker.step({}, Started{}, out);
  const auto& hello = std::get<wire::Hello>(std::get<Send>(out.at(0)).message);
  EXPECT_EQ(hello.node_index, 3U);
  EXPECT_EQ(hello.profile.cost.fixed, 0.01);
  EXPECT_EQ(hello.profile.cost.per_sample, 1e-4);
  EXPECT_EQ(hello.profile.max_batch, 17U);
  EXPECT_EQ(hello.profile.batch_multiple, 4U);
  EXPECT_EQ(hello.profile.transfer_s_per_byte, 0);
  EXPECT_EQ(hello.profile.bytes_per_value, 2U);
}

}  // namespace
}  // namespace motley::protocol
