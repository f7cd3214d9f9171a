// Peers that know the token and send well-formed wrong frames: empty, oversized, of another role, out of order, with a false identity, with
// any value in any field. The receiver closes their connections, its memory does not grow, and honest members finish training.
#include "runtime/paused_cluster_for_tests.h"

namespace motley::runtime {
namespace {

TEST_F(PausedCluster, AChiefSurvivesWrongFrames) {
  start_and_wait();
  attack(chief->process->accept_callbacks(), [](WrongPeer& peer, WrongMessages& messages) {
    const std::uint64_t as = messages.below(4);  // unauthenticated, a worker, a member, a server
    if (as > 0) peer.say(wire::JoinRequest{as == 3 ? "server 1" : node_name(3)});
    if (as == 2) peer.say(wire::Hello{.node = node_name(3), .attempt = 1, .node_index = 3});
  });
  expect_that_training_finishes();
}

TEST_F(PausedCluster, AServerSurvivesWrongFrames) {
  job.servers = 2;
  start_and_wait();
  attack(server->accept_callbacks(), [](WrongPeer& peer, WrongMessages& messages) {
    if (messages.below(2) == 0) peer.say(wire::JoinRequest{node_name(3)});
    if (messages.below(2) == 0) peer.say(wire::Attach{{static_cast<std::uint32_t>(messages.below(5))}, messages.below(3)});
  });
  expect_that_training_finishes();
  ASSERT_TRUE(run_until(io, [this] { return server_over.has_value(); }));
  EXPECT_TRUE(server_over->ok()) << server_over->error().message;
}

std::uint32_t attempt_of(const WrongPeer& peer) {
  std::uint32_t attempt = 0;
  for (const wire::Message& message : peer.received_messages)
    if (const auto* hello = std::get_if<wire::Hello>(&message)) attempt = hello->attempt;
  return attempt;
}

/// Accepts connections and hands them to a WrongPeer.
class AcceptingEndpoint : public transport::AcceptCallbacks {
 public:
  AcceptingEndpoint(boost::asio::io_context& io, const transport::Address& address, const transport::Options& options)
      : acceptor_(transport::listen(io, address, options, *this).value()) {}
  std::unique_ptr<transport::Connection> connection;

 private:
  void accepted(std::unique_ptr<transport::Connection> made) override { connection = std::move(made); }
  void refused(const std::string&, const std::string&) override {}
  std::unique_ptr<transport::Acceptor> acceptor_;
};

TEST_F(PausedCluster, AWorkerSurvivesWrongFrames) {
  SCOPED_TRACE(seed);
  constexpr int fewer = 300;  // each needs a new socket
  job.quorum = 1;
  SmallWorker& worker = start_worker(0);
  WrongMessages messages(seed);
  {
    AcceptingEndpoint wrong(io, address, options);
    WrongPeer peer(io, options);
    std::size_t before = 0;
    for (int i = 0; i < fewer; ++i) {
      if (i == fewer / 8) before = resident_bytes();
      if (!peer.connected()) {
        ASSERT_TRUE(run_until(io, [&] { return wrong.connection != nullptr; }));
        peer.take(std::move(wrong.connection));
        const auto has_received = [&](auto kind) {
          return run_until(io, [&] {
            return !peer.connected() || std::any_of(peer.received_messages.begin(), peer.received_messages.end(),
                                                    [&](const wire::Message& m) { return std::holds_alternative<decltype(kind)>(m); });
          });
        };
        const std::uint64_t as = messages.below(8);  // rarely without a JobDescription
        if (as > 0) peer.say(wire::JobDescription{"the job", {""}, {}});
        ASSERT_TRUE(as < 1 || has_received(wire::Hello{}));
        if (as > 1) peer.say(wire::Welcome{{static_cast<std::uint32_t>(messages.below(4))}, attempt_of(peer)});
        ASSERT_TRUE(as < 2 || has_received(wire::Attach{}));
      }
      wire::Message message = messages.any();
      if (auto* job_description = std::get_if<wire::JobDescription>(&message)) job_description->job = "the job";  // it refuses other jobs
      if (std::holds_alternative<wire::Stop>(message)) continue;                                                  // a Stop would end it
      if (messages.below(3) == 0)
        peer.send(messages.any_head(), messages.below(100));
      else
        peer.say(message);
      transport::run_ready(io);
      ASSERT_FALSE(worker.over) << "after " << i << " frames: " << (worker.over->ok() ? "good" : worker.over->error().message);
    }
    EXPECT_GT(peer.closings, static_cast<std::size_t>(fewer) / 4);
    EXPECT_LT(resident_bytes(), before + most_growth);
  }
  start_chief();
  ASSERT_TRUE(all_are_over());
  expect_every_sample_once();
  expect_all_good();
}

}  // namespace
}  // namespace motley::runtime
