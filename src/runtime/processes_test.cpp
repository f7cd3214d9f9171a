// Whole trainings over real sockets, in one process: the guarantees of the state machines hold with threads and connections between them.
#include <fmt/format.h>

#include "runtime/inputs.h"
#include "runtime/processes_for_tests.h"

namespace motley::runtime {
namespace {

// Undisturbed ----------------------------------------------------------------------------------------------------------------------------

TEST_F(Processes, TrainToTheEndWithTheBitsOfTheReference) {
  start_all();
  ASSERT_TRUE(all_are_over());
  expect_every_sample_once();
  expect_all_good();
  EXPECT_EQ(chief->values(), train_by_hand(job));
  const protocol::TrainingOutcome& outcome = **chief->over;
  EXPECT_EQ(outcome.updates, job.total_samples / small_batch);
  EXPECT_EQ(outcome.bytes_pushed, outcome.updates * job.quorum * linear_values * sizeof(float));
  EXPECT_GE(outcome.bytes_pulled, outcome.bytes_pushed);
  EXPECT_EQ(chief->story.count<trace::Evaluated>(), 3U);
  EXPECT_EQ(chief->story.all<trace::Evaluated>().back().version, Version{outcome.updates});
}

TEST_F(Processes, EndWithTheSameBitsInAnyOrderOfArrival) {
  start_chief();
  for (const std::uint32_t node_index : {2U, 0U, 1U}) {
    start_worker(node_index);
    ASSERT_TRUE(run_until(io, [&] { return !workers.back()->log.empty(); }));  // it has received the job and prepares
  }
  ASSERT_TRUE(all_are_over());
  EXPECT_EQ(chief->values(), train_by_hand(job));
  for (const trace::Joined& joined : chief->story.all<trace::Joined>()) EXPECT_EQ(joined.worker.value, joined.node) << "by node index";
}

TEST_F(Processes, EndWithTheSameBitsOnEmulatedDevicesAndLinks) {
  job.emulated = true;
  start_all();
  ASSERT_TRUE(all_are_over());
  expect_every_sample_once();
  EXPECT_EQ(chief->values(), train_by_hand(job));
}

/// Few bits both ways, encoded and decoded by the event loop or by the device; before a checkpoint the residual is sent too.
TEST_F(Processes, EndWithTheSameBitsWhereverValuesAreEncoded) {
  job.strategy = "hps";
  job.batches = {4, 4, 4};
  job.knobs.time_limited = false;
  for (const policy::Bits bits : {policy::Bits{8, 8}, policy::Bits{16, 16}, policy::Bits{4, 8}})
    for (const std::uint32_t overlap : {0U, 1U}) {
      job.checkpoint_every = overlap == 0 ? 4 : 0;
      job.knobs.bits = policy::BitsConfig{false, bits};
      job.knobs.overlap = overlap;
      std::vector<std::vector<float>> ends;
      for (const bool devices : {false, true}) {
        job.devices = devices;
        start_all();
        ASSERT_TRUE(all_are_over());
        expect_every_sample_once();
        expect_all_good();
        ends.push_back(chief->values());
        EXPECT_LT((**chief->over).bytes_pulled, (**chief->over).updates * job.quorum * linear_values * sizeof(float));
        workers.clear();
        address = fresh_socket();
      }
      EXPECT_EQ(ends[0], ends[1]) << int{bits.push} << "/" << int{bits.pull} << " bits, overlap " << overlap;
    }
}

/// Values that a device would round to bf16 are rounded before they are sent, and its bf16 gradients are sent as such: only bytes change.
TEST_F(Processes, SendBf16ToAndFromDevicesThatComputeWithIt) {
  job.strategy = "hps";
  job.batches = {4, 4, 4};
  job.knobs.time_limited = false;
  job.devices = true;
  job.rounds = true;
  for (const policy::Bits bits : {policy::Bits{32, 32}, policy::Bits{32, 8}, policy::Bits{8, 32}, policy::Bits{4, 8}})
    for (const std::uint32_t overlap : {0U, 1U}) {
      job.checkpoint_every = overlap == 0 ? 4 : 0;  // before a checkpoint contributions are pushed in fp32
      job.knobs.bits = policy::BitsConfig{false, bits};
      job.knobs.overlap = overlap;
      std::vector<std::vector<float>> ends;
      std::vector<std::uint64_t> pushed, pulled;
      for (const bool bf16_transfer : {false, true}) {
        job.bf16_transfer = bf16_transfer;
        start_all();
        ASSERT_TRUE(all_are_over());
        expect_every_sample_once();
        expect_all_good();
        ends.push_back(chief->values());
        pushed.push_back((**chief->over).bytes_pushed);
        pulled.push_back((**chief->over).bytes_pulled);
        workers.clear();
        address = fresh_socket();
      }
      const std::string which = fmt::format("{}/{} bits, overlap {}", bits.push, bits.pull, overlap);
      EXPECT_EQ(ends[0], ends[1]) << which;
      if (bits.pull == 32) {
        EXPECT_EQ(pulled[0], 2 * pulled[1]) << which;
      }
      if (bits.push == 32) {
        EXPECT_EQ(pushed[0], 2 * pushed[1]) << which;
      }
    }
}

class EveryStrategy : public Processes, public testing::WithParamInterface<std::string> {};

TEST_P(EveryStrategy, CountsEverySampleOnce) {
  job.strategy = GetParam();
  start_all();
  ASSERT_TRUE(all_are_over());
  expect_every_sample_once();
  expect_all_good();
}

INSTANTIATE_TEST_SUITE_P(Strategies, EveryStrategy, testing::Values("asp", "ssp", "lb-bsp"), [](const auto& strategy) {
  std::string name = strategy.param;
  std::erase(name, '-');
  return name;
});

TEST_F(Processes, TheChiefsRecordedInputsCanBeReplayed) {
  start_all();
  ASSERT_TRUE(chief_is_over());
  protocol::Chief again = job.chief();
  const auto replayed = replay(chief->inputs, again);
  EXPECT_EQ(replayed.torn, "");
  EXPECT_FALSE(replayed.first_difference.has_value());
  EXPECT_EQ(replayed.inputs, (*chief->over)->events);
  EXPECT_TRUE(again.finished());
}

// Joining and leaving --------------------------------------------------------------------------------------------------------------------

TEST_F(Processes, ADeadWorkerStopsNoOther) {
  start_all();
  ASSERT_TRUE(reaches(5));
  workers.erase(workers.begin() + 1);
  ASSERT_TRUE(all_are_over());
  expect_every_sample_once();
  expect_all_good();
  ASSERT_EQ(chief->story.count<trace::Left>(), 1U);
  const trace::Left left = chief->story.all<trace::Left>()[0];
  EXPECT_EQ(left.worker, WorkerId{1});
  EXPECT_EQ(left.why, static_cast<std::uint8_t>(protocol::LeaveReason::connection_lost));
}

TEST_F(Processes, AWorkerThatDiesWhileComputingStopsNoOther) {
  Gate gate;
  start_chief();
  start_worker(0);
  start_worker(1);
  auto stuck = std::make_unique<SmallWorker>(io, job, address, 2, &gate, options);
  const Opens opens{gate};
  chief->when_told = [&](const trace::Event& event) {
    if (const auto* update = event.as<trace::Applied>(); update != nullptr && update->version.value == 4) gate.close();
  };
  ASSERT_TRUE(reaches(4));
  // Its order is out and the others wait for it at the barrier.
  ASSERT_TRUE(run_until(io, [&] { return chief->story.count<trace::Held>() >= 2; }));
  gate.open();
  stuck.reset();
  ASSERT_TRUE(all_are_over());
  expect_every_sample_once();
}

TEST_F(Processes, AWorkerThatLeavesReturnsItsLease) {
  start_all();
  ASSERT_TRUE(reaches(5));
  workers[2]->process->leave();
  ASSERT_TRUE(run_until(io, [&] { return workers[2]->over.has_value(); }));
  EXPECT_TRUE(workers[2]->over->ok());
  ASSERT_TRUE(all_are_over());
  expect_every_sample_once();
  expect_all_good();
  ASSERT_EQ(chief->story.count<trace::Left>(), 1U);
  EXPECT_EQ(chief->story.all<trace::Left>()[0].why, static_cast<std::uint8_t>(protocol::LeaveReason::said_goodbye));
}

TEST_F(Processes, ASilentWorkerIsFenced) {
  job.heartbeat = std::chrono::milliseconds(20);  // on a busy machine the others may be fenced and admitted again too
  job.silence_deadline = std::chrono::milliseconds(100);
  start_chief();
  start_worker(0);
  start_worker(1);
  auto silent = transport::connect_now(io, address, options);
  ASSERT_TRUE(silent.ok());
  transport::RecordingCallbacks ear;
  const auto has_received = [&]<class Message>(const Message&) {
    return std::any_of(ear.messages.begin(), ear.messages.end(), [](const auto& m) { return std::holds_alternative<Message>(m); });
  };
  (*silent)->start(ear);
  (*silent)->send(wire::JoinRequest{node_name(2)});
  (*silent)->send(wire::Hello{.node = node_name(2), .attempt = 1, .node_index = 2});
  ASSERT_TRUE(run_until(io, [&] { return has_received(wire::Fenced{}); }));
  EXPECT_TRUE(has_received(wire::Welcome{}) && has_received(wire::Order{}));
  const auto welcome =
      std::find_if(ear.messages.begin(), ear.messages.end(), [](const auto& m) { return std::holds_alternative<wire::Welcome>(m); });
  const WorkerId id = std::get<wire::Welcome>(*welcome).worker;
  const std::vector<std::byte> payload(3 * sizeof(float), std::byte{0x7f});
  (*silent)->send(transport::BulkMessage{wire::Push{id, Step{0}, SliceId{0}, 32}, payload, 0, 0});  // too late: it is ignored
  (*silent)->send(wire::Contributed{.worker = id, .step = Step{0}, .base = Version{0}, .report = {.samples = 4}});
  ASSERT_TRUE(run_until(io, [&] { return !ear.tickets.empty(); }));
  EXPECT_FALSE(ear.ended());
  ASSERT_TRUE(all_are_over());
  expect_every_sample_once();
  expect_all_good();
  for (const trace::Counted& event : chief->story.all<trace::Counted>()) EXPECT_NE(event.worker, id);
}

TEST_F(Processes, AWorkerThatLeavesBeforeItConnectsIsDone) {
  SmallWorker& alone = start_worker(0);
  ASSERT_TRUE(run_until(io, [&] { return !alone.log.empty(); }));  // no chief yet
  alone.process->leave();
  ASSERT_TRUE(run_until(io, [&] { return alone.over.has_value(); }));
  EXPECT_TRUE(alone.over->ok());
}

TEST_F(Processes, AWorkerThatJoinsLaterIsGivenWork) {
  job.quorum = 2;
  Gate gate;
  start_all(&gate);
  const Opens opens{gate};
  chief->when_told = [&](const trace::Event& event) {
    if (const auto* update = event.as<trace::Applied>(); update != nullptr && update->version.value == 4)
      gate.close();  // nobody gets further without the third
  };
  ASSERT_TRUE(reaches(4));
  start_worker(2);
  ASSERT_TRUE(run_until(io, [&] { return chief->story.count<trace::Joined>() == 3; }));
  gate.open();
  ASSERT_TRUE(all_are_over());
  expect_every_sample_once();
  expect_all_good();
  const auto counted = chief->story.all<trace::Counted>();
  EXPECT_TRUE(std::any_of(counted.begin(), counted.end(), [](const trace::Counted& event) { return event.worker == WorkerId{2}; }));
}

TEST_F(Processes, AWorkerMayStartLongBeforeItsChief) {
  for (std::uint32_t n = 0; n < job.quorum; ++n) {
    SmallWorker& early = start_worker(n);
    ASSERT_TRUE(run_until(io, [&] { return !early.log.empty(); }));  // no chief yet
  }
  start_chief();
  ASSERT_TRUE(all_are_over());
  expect_every_sample_once();
  EXPECT_EQ(chief->values(), train_by_hand(job));
}

TEST_F(Processes, AWorkerGivesUpOnAChiefThatNeverStarts) {
  SmallWorker alone(io, job, address, 0, nullptr, options, std::chrono::milliseconds(0));
  ASSERT_TRUE(run_until(io, [&] { return alone.over.has_value(); }));
  EXPECT_FALSE(alone.over->ok());
}

}  // namespace
}  // namespace motley::runtime
