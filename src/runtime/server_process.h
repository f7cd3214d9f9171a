// A server process: its session with the chief, and one ServerTraining for each connection to a chief. Nothing is carried over from one
// connection to the next: a chief that resumes from a checkpoint finds a server that begins.
#pragma once
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "runtime/deferred_destruction.h"
#include "runtime/expulsions.h"
#include "runtime/log.h"
#include "runtime/server_setup.h"
#include "runtime/server_training.h"
#include "runtime/session.h"
#include "transport/acceptor.h"

namespace motley::runtime {

class ServerProcess final : private PeerOwner, private SessionOwner {
 public:
  /// `prepare` is called on the event-loop thread.
  ServerProcess(boost::asio::io_context& event_loop, ServerProcessOptions options, PrepareServer prepare, Log log);
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ~ServerProcess() override = default;

  /// Then run the event loop. `over` is called once, last: good when a chief said that training has ended.
  void start(std::function<void(Outcome)> over);
  /// Accepts connections like its listener, once it knows the job. For tests.
  [[nodiscard]] transport::AcceptCallbacks& accept_callbacks() { return *training_; }

 private:
  void job_received(const wire::JobDescription& description);

  [[nodiscard]] wire::Objection objection(const PeerConnection& from, wire::Lane lane, const wire::Message& message) const override;
  void expel(PeerConnection& peer, const std::string& why) override;
  void on_message(PeerConnection& from, wire::Message message) override;
  std::span<std::byte> receive_buffer(PeerConnection& from, const wire::Message& head, std::size_t bytes) override;
  void received(PeerConnection& from, const wire::Message& head) override;
  void sent(PeerConnection& to, std::uint64_t ticket) override;
  void closed(PeerConnection& peer, const Error& why) override;

  void disconnected() override;
  void ended(const Outcome& how) override { over_(how); }

  boost::asio::io_context& event_loop_;
  ServerProcessOptions options_;
  PrepareServer prepare_;
  Log log_;
  std::function<void(Outcome)> over_;
  Expulsions expulsions_;
  Session session_;
  std::unique_ptr<ServerTraining> training_;  // null: the job is not known on this connection
  DeferredDestruction retired_;
};

}  // namespace motley::runtime
