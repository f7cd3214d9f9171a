// Unauthenticated and misbehaving peers of a running training, and trainings that stop and continue.
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>

#include "runtime/processes_for_tests.h"

namespace motley::runtime {
namespace {

// Wrong peers ----------------------------------------------------------------------------------------------------------------------------

TEST_F(Processes, AWrongTokenIsRefused) {
  options.token = "right";
  start_all();
  transport::Options wrong = options;
  wrong.token = "wrong";
  SmallWorker refused(io, job, address, 3, nullptr, wrong);
  ASSERT_TRUE(run_until(io, [&] { return refused.over.has_value(); }));  // a wrong token stays wrong: it does not try again
  ASSERT_FALSE(refused.over->ok());
  EXPECT_EQ(refused.over->error().next, Next::tell_user) << refused.over->error().message;
  ASSERT_TRUE(all_are_over());
  EXPECT_FALSE(chief->log.empty());
  EXPECT_EQ(chief->story.count<trace::Joined>(), job.quorum);
  EXPECT_EQ(chief->values(), train_by_hand(job));
}

TEST_F(Processes, AnotherJobIsRefused) {
  options.job.fill(std::byte{1});
  start_all();
  transport::Options other = options;
  other.job.fill(std::byte{2});
  const auto refused = transport::connect_now(io, address, other);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().next, Next::tell_user) << refused.error().message;
  ASSERT_TRUE(all_are_over());
  EXPECT_EQ(chief->values(), train_by_hand(job));
}

TEST_F(Processes, GarbageDisturbsNoMember) {
  start_all();
  ASSERT_TRUE(reaches(3));
  const std::string path = std::get<transport::UnixAddress>(address).path;
  std::vector<boost::asio::local::stream_protocol::socket> sockets;
  for (std::size_t bytes : {0U, 1U, 37U, 38U, 119U, 4096U}) {
    auto& socket = sockets.emplace_back(io);
    socket.connect(path);
    Rng rng(bytes, "garbage");
    std::vector<std::byte> garbage(bytes);
    for (std::byte& b : garbage) b = static_cast<std::byte>(rng.bits());
    boost::system::error_code ignored;
    boost::asio::write(socket, boost::asio::buffer(garbage), ignored);
  }
  sockets.erase(sockets.begin());  // one is closed, the others stay
  ASSERT_TRUE(all_are_over());
  expect_every_sample_once();
  expect_all_good();
  EXPECT_EQ(chief->values(), train_by_hand(job));
}

/// A peer that knows the token and breaks the protocol.
class ProtocolBreaker : public Processes, public testing::WithParamInterface<int> {};

TEST_P(ProtocolBreaker, IsExpelledAndDisturbsNoMember) {
  start_all();
  ASSERT_TRUE(reaches(3));
  auto connection = transport::connect_now(io, address, options);
  ASSERT_TRUE(connection.ok());
  transport::RecordingCallbacks ear;
  (*connection)->start(ear);
  const std::vector<std::byte> payload(3 * sizeof(float), std::byte{0x7f});
  switch (GetParam()) {
    case 0: (*connection)->send(wire::Attach{WorkerId{0}}); break;
    case 1: (*connection)->send(wire::Leaving{WorkerId{0}}); break;
    case 2: (*connection)->send(wire::Heartbeat{WorkerId{99}}); break;
    case 3: (*connection)->send(wire::Gathered{ServerId{0}, WorkerId{0}, Step{4}}); break;
    case 4: (*connection)->send(wire::Stop{}); break;
    case 5: (*connection)->send(transport::BulkMessage{wire::Push{WorkerId{0}, Step{4}, SliceId{0}, 32}, payload, 0, 0}); break;
    case 6: (*connection)->send(transport::BulkMessage{wire::Push{WorkerId{99}, Step{0}, SliceId{0}, 32}, payload, 0, 0}); break;
    case 7:
      (*connection)->send(transport::BulkMessage{wire::Pulled{WorkerId{0}, Step{4}, Version{4}, SliceId{0}, 32}, payload, 0, 0});
      break;
    case 8:
      (*connection)->send(wire::Contributed{.worker = WorkerId{1}, .step = Step{4}, .base = Version{4}, .report = {.samples = 4}});
      break;
    default: break;
  }
  ASSERT_TRUE(run_until(io, [&] { return ear.ended(); }));
  ASSERT_TRUE(all_are_over());
  expect_every_sample_once();
  expect_all_good();
  EXPECT_EQ(chief->story.count<trace::Left>(), 0U);
  EXPECT_EQ(chief->values(), train_by_hand(job));
}

INSTANTIATE_TEST_SUITE_P(Kinds, ProtocolBreaker, testing::Range(0, 9));

// Stopping and resuming ------------------------------------------------------------------------------------------------------------------

TEST_F(Processes, AnInterruptedChiefSavesAndEveryProcessEnds) {
  start_all();
  ASSERT_TRUE(reaches(7));
  chief->process->interrupt();
  ASSERT_TRUE(all_are_over());
  expect_all_good();
  ASSERT_TRUE(chief->over->ok());
  EXPECT_EQ((*chief->over)->why, protocol::EndReason::interrupted);
  const auto saved = chief->saved();
  ASSERT_EQ(saved.size(), 1U);
  EXPECT_EQ(saved[0].chief.version, Version{7});
  EXPECT_EQ(saved[0].moments.updates, 7U);
  std::uint64_t counted = 0;
  for (const auto& [first, last] : saved[0].chief.counted) counted += last - first;
  EXPECT_EQ(counted, 7 * small_batch);
  EXPECT_EQ((*chief->over)->samples, counted);
}

TEST_F(Processes, AChiefInterruptedBeforeTrainingSavesNothing) {
  start_chief();
  chief->process->interrupt();
  ASSERT_TRUE(chief_is_over());
  EXPECT_EQ((*chief->over)->why, protocol::EndReason::interrupted);
  EXPECT_TRUE(chief->saved().empty());
}

TEST_F(Processes, ResumingFromACheckpointEndsWithTheSameBits) {
  start_all();
  ASSERT_TRUE(reaches(7));
  chief->process->interrupt();
  ASSERT_TRUE(all_are_over());
  const Saved saved = chief->saved().at(0);
  workers.clear();
  start_chief(&saved);
  for (std::uint32_t n = 0; n < job.quorum; ++n) start_worker(n);
  ASSERT_TRUE(all_are_over());
  expect_all_good();
  EXPECT_EQ((*chief->over)->why, protocol::EndReason::every_sample_counted);
  EXPECT_EQ((*chief->over)->samples, job.total_samples);
  EXPECT_EQ((*chief->over)->updates, job.total_samples / small_batch);
  std::vector<int> rest(job.total_samples, 1);  // samples counted before are not counted again
  for (const auto& [first, last] : saved.chief.counted)
    std::fill(rest.begin() + static_cast<std::ptrdiff_t>(first), rest.begin() + static_cast<std::ptrdiff_t>(last), 0);
  EXPECT_EQ(chief->story.times_counted(job), rest);
  EXPECT_EQ(chief->values(), train_by_hand(job));
}

TEST_F(Processes, WorkersReconnectToTheNextChief) {
  job.checkpoint_every = 4;
  Gate gate;
  start_all(&gate);
  const Opens opens{gate};
  chief->when_told = [&](const trace::Event& event) {
    if (const auto* update = event.as<trace::Applied>(); update != nullptr && update->version.value == 6) gate.close();
  };
  ASSERT_TRUE(run_until(io, [&] { return chief->story.version() == 6 && !chief->saved().empty(); }));
  const Saved saved = chief->saved().at(0);
  EXPECT_EQ(saved.chief.version, Version{4});
  chief.reset();  // dies two updates after its last checkpoint
  for (const auto& worker : workers)
    ASSERT_TRUE(run_until(io, [&] { return worker->log.size() >= 2; }));  // "preparing", then "lost the chief"
  gate.open();
  start_chief(&saved);
  ASSERT_TRUE(all_are_over());
  expect_all_good();
  EXPECT_EQ((*chief->over)->why, protocol::EndReason::every_sample_counted);
  EXPECT_EQ(chief->values(), train_by_hand(job));
  for (const trace::Joined& event : chief->story.all<trace::Joined>()) EXPECT_GE(event.worker, saved.chief.next_worker);
}

TEST_F(Processes, AChiefCanBeDestroyedAtAnyTime) {
  for (const std::uint64_t version : {0U, 1U, 4U}) {
    start_all();
    ASSERT_TRUE(reaches(version));
    chief.reset();
    workers.clear();
    transport::run_ready(io);
  }
}

}  // namespace
}  // namespace motley::runtime
