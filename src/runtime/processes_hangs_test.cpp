// Trainings over real sockets with devices that hang while their processes run, and with a chief that is stopped for a while.
#include <boost/asio/steady_timer.hpp>

#include "runtime/processes_for_tests.h"

namespace motley::runtime {
namespace {

using protocol::LeaveReason;

/// On a busy machine other workers may be expelled too and rejoin; the expectations hold nevertheless.
class ProcessesThatHang : public Processes, public testing::WithParamInterface<std::string> {};
INSTANTIATE_TEST_SUITE_P(UnderEachStrategy, ProcessesThatHang, testing::Values("bsp", "lb-bsp", "asp", "ssp"), [](const auto& strategy) {
  std::string name = strategy.param;
  std::erase(name, '-');
  return name;
});

TEST_P(ProcessesThatHang, AreExpelledAndReturnWhenTheDeviceIsFree) {
  job.strategy = GetParam();
  job.step_limit = std::chrono::milliseconds(300);
  job.heartbeat = std::chrono::milliseconds(50);
  job.total_samples = 600;
  Gate gate, others;
  start_chief();
  start_worker(0, &others);
  start_worker(1, &others);
  start_worker(2, &gate);
  const Opens opens{gate}, opens_others{others};
  std::optional<WorkerId> hung;
  chief->when_told = [&](const trace::Event& event) {
    if (const auto* joined = event.as<trace::Joined>(); joined != nullptr && joined->node == 2 && !hung) hung = joined->worker;
    if (const auto* counted = event.as<trace::Counted>(); counted != nullptr && counted->worker == hung) gate.close();
    if (const auto* left = event.as<trace::Left>(); left != nullptr && left->worker == hung)
      others.close();  // it is to have something to come back to
  };
  const auto left = [&] {
    const auto all = chief->story.all<trace::Left>();
    const auto found = std::find_if(all.begin(), all.end(), [&](const trace::Left& event) { return event.worker == hung; });
    return found == all.end() ? std::nullopt : std::optional(*found);
  };
  ASSERT_TRUE(run_until(io, [&] { return left() || chief->over; }));
  ASSERT_TRUE(left()) << "training ended before a device could hang";
  EXPECT_EQ(left()->why, static_cast<std::uint8_t>(LeaveReason::step_too_long));
  const std::string named = "worker " + std::to_string(hung->value) + " on node " + node_name(2);
  EXPECT_TRUE(std::any_of(chief->log.begin(), chief->log.end(), [&](const std::string& line) {
    return line.find(named) == 0 && line.find("is expelled") != std::string::npos && line.find("cluster.step_limit_s") != std::string::npos;
  })) << named;
  const auto back = [&] {
    const auto all = chief->story.all<trace::Joined>();
    return std::any_of(all.begin(), all.end(), [&](const trace::Joined& event) { return event.node == 2 && event.worker != hung; });
  };
  EXPECT_FALSE(back());
  gate.open();
  ASSERT_TRUE(run_until(io, [&] { return back() || chief->over; }));
  ASSERT_TRUE(back()) << "its device is free, and samples are left";
  others.open();
  ASSERT_TRUE(chief_is_over());
  expect_every_sample_once();
}

/// The event loop stands still, as when the process is stopped: messages of the workers wait unread.
TEST_F(Processes, AChiefThatStoodStillExpelsNoWorker) {
  job.heartbeat = std::chrono::milliseconds(20);
  job.silence_deadline = std::chrono::milliseconds(200);
  job.step_limit = std::chrono::milliseconds(200);
  Gate gate;
  const Opens opens{gate};
  start_all(&gate);
  ASSERT_TRUE(reaches(4));
  gate.close();  // so that training is not over by then
  boost::asio::io_context elsewhere;
  boost::asio::steady_timer(elsewhere, std::chrono::milliseconds(500)).wait();
  gate.open();
  ASSERT_TRUE(all_are_over());
  expect_every_sample_once();
  for (const trace::Left& event : chief->story.all<trace::Left>())
    EXPECT_NE(event.why, static_cast<std::uint8_t>(LeaveReason::silent_too_long)) << "worker " << event.worker.value;
}

}  // namespace
}  // namespace motley::runtime
