// For tests: a cluster that is paused during training, so that a test can send it messages, and then continues.
#pragma once
#include "runtime/processes_for_tests.h"
#include "runtime/server_process.h"
#include "runtime/wrong_frames_for_tests.h"

namespace motley::runtime {

class PausedCluster : public Processes {
 protected:
  static constexpr std::uint64_t seed = 20'260;
  static constexpr int frames = 5'000;  // wrong ones, sent to each receiver
  static constexpr std::size_t most_growth = std::size_t{64} << 20;

  /// Trains up to a point where all workers wait.
  void start_and_wait() {
    start_chief();
    if (job.servers > 1) start_server();
    for (std::uint32_t n = 0; n < job.quorum; ++n) start_worker(n, &gate);
    chief->when_told = [this](const trace::Event& event) {
      if (const auto* update = event.as<trace::Applied>(); update != nullptr && update->version.value == 5) gate.close();
    };
    ASSERT_TRUE(reaches(5));
    transport::run_ready(io);
  }
  void start_server() {
    const PrepareServer prepare = [this](const std::string&) -> Result<ServerSetup> {
      return ServerSetup{job.cluster(), linear_layout(job.servers), job.optimizer, options.job};
    };
    ServerProcessOptions made{.server = {1}, .chief = address, .listen = server_address, .reach = {}, .transport = options};
    made.join_deadline = job.join_deadline;
    server = std::make_unique<ServerProcess>(io, std::move(made), prepare, [this](const std::string& line) { server_log.push_back(line); });
    server->start([this](Outcome how) { server_over = std::move(how); });
  }

  /// Sends frames to `accept_callbacks`, on a new connection whenever the last one was closed; each connection begins with `introduce`.
  void attack(transport::AcceptCallbacks& accept_callbacks, const std::function<void(WrongPeer&, WrongMessages&)>& introduce) {
    SCOPED_TRACE(seed);
    WrongMessages messages(seed);
    WrongPeer peer(io, options);
    std::size_t before = 0;
    for (int i = 0; i < frames; ++i) {
      if (i == frames / 8) before = resident_bytes();  // by then everything that is allocated once is allocated
      if (!peer.connected()) {
        peer.connect(accept_callbacks);
        introduce(peer, messages);
      }
      peer.send_wrong(messages);
      transport::run_ready(io);
      ASSERT_FALSE(chief->over || server_over) << "after " << i << " frames";
    }
    EXPECT_GT(peer.closings, static_cast<std::size_t>(frames) / 4);
    EXPECT_LT(resident_bytes(), before + most_growth);
  }
  void expect_that_training_finishes() {
    gate.open();
    ASSERT_TRUE(all_are_over());
    expect_every_sample_once();
    expect_all_good();
  }

  Gate gate;
  const Opens opens{gate};
  transport::Address server_address = fresh_socket();
  std::unique_ptr<ServerProcess> server;
  std::optional<Outcome> server_over;
  std::vector<std::string> server_log;
};

}  // namespace motley::runtime
