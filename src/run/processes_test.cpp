// Whole trainings over real sockets, in one process: what the machines promise must hold with threads, connections and their ends between
// them.
#include <gtest/gtest.h>

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>

#include "run/inputs.h"
#include "run/small_cluster_for_tests.h"

namespace motley::run {
namespace {

using transport::fresh_socket;
using transport::run_until;

constexpr transport::Options patient() {
  transport::Options options;
  options.handshake_time = std::chrono::hours(1);  // a busy machine is no reason to fail
  return options;
}

/// Opens a gate when a test is over, however that goes: nobody waits behind it for ever.
struct Opens {
  Gate& gate;
  ~Opens() { gate.open(); }
};

class Processes : public testing::Test {
 protected:
  void start_chief(const Saved* from = nullptr) {
    chief.reset();
    chief = std::make_unique<SmallChief>(io, job, address, from, options);
  }
  SmallWorker& start_worker(std::uint32_t seat, Gate* gate = nullptr) {
    workers.push_back(std::make_unique<SmallWorker>(io, job, address, seat, gate, options));
    return *workers.back();
  }
  void start_all(Gate* gate = nullptr) {
    start_chief();
    for (std::uint32_t n = 0; n < job.quorum; ++n) start_worker(n, gate);
  }

  auto reaches(std::uint64_t version) {
    return run_until(io, [this, version] { return chief->story.version() >= version || chief->over; });
  }
  auto chief_is_over() {
    return run_until(io, [this] { return chief->over.has_value(); });
  }
  auto all_are_over() {
    return run_until(io, [this] {
      return chief->over && std::all_of(workers.begin(), workers.end(), [](const auto& worker) { return worker->over.has_value(); });
    });
  }

  void expect_every_sample_once() const {
    ASSERT_TRUE(chief->over->ok()) << chief->over->error().message;
    const protocol::Ending& ending = **chief->over;
    EXPECT_EQ(ending.why, protocol::Ended::every_sample_counted);
    EXPECT_EQ(ending.samples, job.total_samples);
    EXPECT_EQ(ending.closed_epochs, job.total_samples / job.epoch_samples);
    EXPECT_EQ(chief->story.times_counted(job), std::vector<int>(job.total_samples, 1));
  }
  void expect_all_good() const {
    for (const auto& worker : workers) EXPECT_TRUE(worker->over->ok()) << worker->over->error().message;
  }

  SmallJob job;
  transport::Options options = patient();
  transport::Address address = fresh_socket();
  boost::asio::io_context io;
  std::unique_ptr<SmallChief> chief;
  std::vector<std::unique_ptr<SmallWorker>> workers;
};

// Without incident -----------------------------------------------------------------------------------------------------------------------

TEST_F(Processes, TrainToTheEndWithTheBitsOfTheHand) {
  start_all();
  ASSERT_TRUE(all_are_over());
  expect_every_sample_once();
  expect_all_good();
  EXPECT_EQ(chief->values(), train_by_hand(job));
  const protocol::Ending& ending = **chief->over;
  EXPECT_EQ(ending.updates, job.total_samples / small_batch);
  EXPECT_EQ(ending.bytes_pushed, ending.updates * job.quorum * linear_values * sizeof(float));
  EXPECT_GE(ending.bytes_pulled, ending.bytes_pushed);
  EXPECT_EQ(chief->story.count(trace::Kind::evaluated), 3U);
  EXPECT_EQ(chief->story.all(trace::Kind::evaluated).back().version, Version{ending.updates});
}

TEST_F(Processes, EndWithTheSameBitsWhoeverComesFirst) {
  start_chief();
  for (const std::uint32_t seat : {2U, 0U, 1U}) {
    start_worker(seat);
    ASSERT_TRUE(run_until(io, [&] { return !workers.back()->log.empty(); }));  // it prepares: it has been briefed
  }
  ASSERT_TRUE(all_are_over());
  EXPECT_EQ(chief->values(), train_by_hand(job));
  for (const trace::Event& joined : chief->story.all(trace::Kind::joined)) EXPECT_EQ(joined.worker.value, joined.first) << "by seat";
}

TEST_F(Processes, EndWithTheSameBitsOnEmulatedDevicesAndLinks) {
  job.emulated = true;
  start_all();
  ASSERT_TRUE(all_are_over());
  expect_every_sample_once();
  EXPECT_EQ(chief->values(), train_by_hand(job));
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

TEST_F(Processes, WhatTheChiefHeardCanBeLivedAgain) {
  start_all();
  ASSERT_TRUE(chief_is_over());
  protocol::Chief again = job.chief();
  const auto replayed = replay(chief->inputs, again);
  ASSERT_TRUE(replayed.ok()) << replayed.error().message;
  EXPECT_FALSE(replayed->first_difference.has_value());
  EXPECT_FALSE(replayed->cut_short);
  EXPECT_EQ(replayed->inputs, (*chief->over)->events);
  EXPECT_TRUE(again.finished());
}

// Coming and going -----------------------------------------------------------------------------------------------------------------------

TEST_F(Processes, OneThatDiesInMidRunStopsNobody) {
  start_all();
  ASSERT_TRUE(reaches(5));
  workers.erase(workers.begin() + 1);
  ASSERT_TRUE(all_are_over());
  expect_every_sample_once();
  expect_all_good();
  ASSERT_EQ(chief->story.count(trace::Kind::left), 1U);
  const trace::Event left = chief->story.all(trace::Kind::left)[0];
  EXPECT_EQ(left.worker, WorkerId{1});
  EXPECT_EQ(left.why, static_cast<std::uint8_t>(protocol::Gone::connection_lost));
}

TEST_F(Processes, OneThatDiesWhileItComputesStopsNobody) {
  Gate gate;
  start_chief();
  start_worker(0);
  start_worker(1);
  auto stuck = std::make_unique<SmallWorker>(io, job, address, 2, &gate, options);
  const Opens opens{gate};
  chief->when_told = [&](const trace::Event& event) {
    if (event.kind == trace::Kind::applied && event.version.value == 4) gate.close();
  };
  ASSERT_TRUE(reaches(4));
  // Its order is out and the others wait for it at the barrier.
  ASSERT_TRUE(run_until(io, [&] { return chief->story.count(trace::Kind::held) >= 2; }));
  gate.open();
  stuck.reset();
  ASSERT_TRUE(all_are_over());
  expect_every_sample_once();
}

TEST_F(Processes, OneThatLeavesReturnsItsLease) {
  start_all();
  ASSERT_TRUE(reaches(5));
  workers[2]->process->leave();
  ASSERT_TRUE(run_until(io, [&] { return workers[2]->over.has_value(); }));
  EXPECT_TRUE(workers[2]->over->ok());
  ASSERT_TRUE(all_are_over());
  expect_every_sample_once();
  expect_all_good();
  ASSERT_EQ(chief->story.count(trace::Kind::left), 1U);
  EXPECT_EQ(chief->story.all(trace::Kind::left)[0].why, static_cast<std::uint8_t>(protocol::Gone::said_goodbye));
}

TEST_F(Processes, OneThatIsSilentIsFenced) {
  job.heartbeat = std::chrono::milliseconds(20);  // on a busy machine the others are fenced too, and come again: all must hold just so
  job.silence_deadline = std::chrono::milliseconds(100);
  start_chief();
  start_worker(0);
  start_worker(1);
  auto silent = transport::connect_now(io, address, options);
  ASSERT_TRUE(silent.ok());
  transport::Ear ear;
  const auto heard = [&]<class Message>(const Message&) {
    return std::any_of(ear.messages.begin(), ear.messages.end(), [](const auto& m) { return std::holds_alternative<Message>(m); });
  };
  (*silent)->start(ear);
  (*silent)->send(wire::Enquire{node_name(2)});
  (*silent)->send(wire::Hello{node_name(2), 1, 0, 2});
  ASSERT_TRUE(run_until(io, [&] { return heard(wire::Fenced{}); }));
  EXPECT_TRUE(heard(wire::Welcome{}) && heard(wire::Order{}));
  const auto welcome =
      std::find_if(ear.messages.begin(), ear.messages.end(), [](const auto& m) { return std::holds_alternative<wire::Welcome>(m); });
  const WorkerId id = std::get<wire::Welcome>(*welcome).worker;
  const std::vector<std::byte> payload(3 * sizeof(float), std::byte{0x7f});
  (*silent)->send(transport::Parcel{wire::Push{id, Step{0}, SliceId{0}, 32}, payload, 0, 0});  // too late: into the void
  (*silent)->send(wire::Contributed{id, Step{0}, Version{0}, 4, 1, 0, 0, true, {}});
  ASSERT_TRUE(run_until(io, [&] { return !ear.tickets.empty(); }));
  EXPECT_FALSE(ear.ended());
  ASSERT_TRUE(all_are_over());
  expect_every_sample_once();
  expect_all_good();
  for (const trace::Event& event : chief->story.all(trace::Kind::counted)) EXPECT_NE(event.worker, id);
}

TEST_F(Processes, OneThatLeavesBeforeItReachesAnybodyIsDone) {
  SmallWorker& alone = start_worker(0);
  ASSERT_TRUE(run_until(io, [&] { return !alone.log.empty(); }));  // nobody there
  alone.process->leave();
  ASSERT_TRUE(run_until(io, [&] { return alone.over.has_value(); }));
  EXPECT_TRUE(alone.over->ok());
}

TEST_F(Processes, OneThatComesLaterIsPutToWork) {
  job.quorum = 2;
  Gate gate;
  start_all(&gate);
  const Opens opens{gate};
  chief->when_told = [&](const trace::Event& event) {
    if (event.kind == trace::Kind::applied && event.version.value == 4) gate.close();  // nobody gets further without the third
  };
  ASSERT_TRUE(reaches(4));
  start_worker(2);
  ASSERT_TRUE(run_until(io, [&] { return chief->story.count(trace::Kind::joined) == 3; }));
  gate.open();
  ASSERT_TRUE(all_are_over());
  expect_every_sample_once();
  expect_all_good();
  const auto counted = chief->story.all(trace::Kind::counted);
  EXPECT_TRUE(std::any_of(counted.begin(), counted.end(), [](const trace::Event& event) { return event.worker == WorkerId{2}; }));
}

TEST_F(Processes, AWorkerMayComeLongBeforeItsChief) {
  for (std::uint32_t n = 0; n < job.quorum; ++n) {
    SmallWorker& early = start_worker(n);
    ASSERT_TRUE(run_until(io, [&] { return !early.log.empty(); }));  // nobody there
  }
  start_chief();
  ASSERT_TRUE(all_are_over());
  expect_every_sample_once();
  EXPECT_EQ(chief->values(), train_by_hand(job));
}

TEST_F(Processes, AWorkerGivesUpOnAChiefThatNeverComes) {
  SmallWorker alone(io, job, address, 0, nullptr, options, std::chrono::milliseconds(0));
  ASSERT_TRUE(run_until(io, [&] { return alone.over.has_value(); }));
  EXPECT_FALSE(alone.over->ok());
}

// Strangers ------------------------------------------------------------------------------------------------------------------------------

TEST_F(Processes, AWrongTokenIsRefused) {
  options.token = "right";
  start_all();
  transport::Options wrong = options;
  wrong.token = "wrong";
  SmallWorker stranger(io, job, address, 3, nullptr, wrong);
  ASSERT_TRUE(run_until(io, [&] { return stranger.over.has_value(); }));  // a wrong token stays wrong: it does not try again
  ASSERT_FALSE(stranger.over->ok());
  EXPECT_EQ(stranger.over->error().next, Next::tell_user) << stranger.over->error().message;
  ASSERT_TRUE(all_are_over());
  EXPECT_FALSE(chief->log.empty());
  EXPECT_EQ(chief->story.count(trace::Kind::joined), job.quorum);
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

TEST_F(Processes, GarbageDisturbsNobody) {
  start_all();
  ASSERT_TRUE(reaches(3));
  const std::string path = std::get<transport::UnixAddress>(address).path;
  std::vector<boost::asio::local::stream_protocol::socket> strangers;
  for (std::size_t bytes : {0U, 1U, 37U, 38U, 119U, 4096U}) {
    auto& stranger = strangers.emplace_back(io);
    stranger.connect(path);
    Rng rng(bytes, "garbage");
    std::vector<std::byte> garbage(bytes);
    for (std::byte& b : garbage) b = static_cast<std::byte>(rng.bits());
    boost::system::error_code ignored;
    boost::asio::write(stranger, boost::asio::buffer(garbage), ignored);
  }
  strangers.erase(strangers.begin());  // one goes without a word, the others stay
  ASSERT_TRUE(all_are_over());
  expect_every_sample_once();
  expect_all_good();
  EXPECT_EQ(chief->values(), train_by_hand(job));
}

/// Knows the token and the protocol, and does not keep to it.
class Impostor : public Processes, public testing::WithParamInterface<int> {};

TEST_P(Impostor, IsSentAwayAndDisturbsNobody) {
  start_all();
  ASSERT_TRUE(reaches(3));
  auto connection = transport::connect_now(io, address, options);
  ASSERT_TRUE(connection.ok());
  transport::Ear ear;
  (*connection)->start(ear);
  const std::vector<std::byte> payload(3 * sizeof(float), std::byte{0x7f});
  switch (GetParam()) {
    case 0: (*connection)->send(wire::Attach{WorkerId{0}}); break;
    case 1: (*connection)->send(wire::Leaving{WorkerId{0}}); break;
    case 2: (*connection)->send(wire::Heartbeat{WorkerId{99}}); break;
    case 3: (*connection)->send(wire::Gathered{ServerId{0}, WorkerId{0}, Step{4}}); break;
    case 4: (*connection)->send(wire::Stop{}); break;
    case 5: (*connection)->send(transport::Parcel{wire::Push{WorkerId{0}, Step{4}, SliceId{0}, 32}, payload, 0, 0}); break;
    case 6: (*connection)->send(transport::Parcel{wire::Push{WorkerId{99}, Step{0}, SliceId{0}, 32}, payload, 0, 0}); break;
    case 7: (*connection)->send(transport::Parcel{wire::Pulled{WorkerId{0}, Step{4}, Version{4}, SliceId{0}, 32}, payload, 0, 0}); break;
    case 8: (*connection)->send(wire::Contributed{WorkerId{1}, Step{4}, Version{4}, 4, 1, 0, 0, true, {}}); break;
    default: break;
  }
  ASSERT_TRUE(run_until(io, [&] { return ear.ended(); }));
  ASSERT_TRUE(all_are_over());
  expect_every_sample_once();
  expect_all_good();
  EXPECT_EQ(chief->story.count(trace::Kind::left), 0U);
  EXPECT_EQ(chief->values(), train_by_hand(job));
}

INSTANTIATE_TEST_SUITE_P(Kinds, Impostor, testing::Range(0, 9));

// Stopping and going on
// --------------------------------------------------------------------------------------------------------------------

TEST_F(Processes, InterruptedTheChiefSavesAndEveryoneEnds) {
  start_all();
  ASSERT_TRUE(reaches(7));
  chief->process->interrupt();
  ASSERT_TRUE(all_are_over());
  expect_all_good();
  ASSERT_TRUE(chief->over->ok());
  EXPECT_EQ((*chief->over)->why, protocol::Ended::interrupted);
  const auto saved = chief->saved();
  ASSERT_EQ(saved.size(), 1U);
  EXPECT_EQ(saved[0].chief.version, Version{7});
  EXPECT_EQ(saved[0].moments.updates, 7U);
  std::uint64_t counted = 0;
  for (const auto& [first, last] : saved[0].chief.counted) counted += last - first;
  EXPECT_EQ(counted, 7 * small_batch);
  EXPECT_EQ((*chief->over)->samples, counted);
}

TEST_F(Processes, InterruptedBeforeAnybodyCameThereIsNothingToSave) {
  start_chief();
  chief->process->interrupt();
  ASSERT_TRUE(chief_is_over());
  EXPECT_EQ((*chief->over)->why, protocol::Ended::interrupted);
  EXPECT_TRUE(chief->saved().empty());
}

TEST_F(Processes, GoingOnFromWhatWasSavedEndsWithTheSameBits) {
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
  EXPECT_EQ((*chief->over)->why, protocol::Ended::every_sample_counted);
  EXPECT_EQ((*chief->over)->samples, job.total_samples);
  EXPECT_EQ((*chief->over)->updates, job.total_samples / small_batch);
  std::vector<int> rest(job.total_samples, 1);  // what was counted before is not counted again
  for (const auto& [first, last] : saved.chief.counted)
    std::fill(rest.begin() + static_cast<std::ptrdiff_t>(first), rest.begin() + static_cast<std::ptrdiff_t>(last), 0);
  EXPECT_EQ(chief->story.times_counted(job), rest);
  EXPECT_EQ(chief->values(), train_by_hand(job));
}

TEST_F(Processes, WorkersFindTheNextChiefByThemselves) {
  job.checkpoint_every = 4;
  Gate gate;
  start_all(&gate);
  const Opens opens{gate};
  chief->when_told = [&](const trace::Event& event) {
    if (event.kind == trace::Kind::applied && event.version.value == 6) gate.close();
  };
  ASSERT_TRUE(run_until(io, [&] { return chief->story.version() == 6 && !chief->saved().empty(); }));
  const Saved saved = chief->saved().at(0);
  EXPECT_EQ(saved.chief.version, Version{4});
  chief.reset();  // dies without a word, two updates after what it saved
  for (const auto& worker : workers)
    ASSERT_TRUE(run_until(io, [&] { return worker->log.size() >= 2; }));  // "preparing", then "lost the chief"
  gate.open();
  start_chief(&saved);
  ASSERT_TRUE(all_are_over());
  expect_all_good();
  EXPECT_EQ((*chief->over)->why, protocol::Ended::every_sample_counted);
  EXPECT_EQ(chief->values(), train_by_hand(job));
  for (const trace::Event& event : chief->story.all(trace::Kind::joined)) EXPECT_GE(event.worker, saved.chief.next_worker);
}

TEST_F(Processes, AChiefMayBeDestroyedAtAnyTime) {
  for (const std::uint64_t version : {0U, 1U, 4U}) {
    start_all();
    ASSERT_TRUE(reaches(version));
    chief.reset();
    workers.clear();
    transport::run_ready(io);
  }
}

}  // namespace
}  // namespace motley::run
