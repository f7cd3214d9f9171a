// A server for as long as one connection to its chief lasts: receives its slices from the chief, then holds them in a shard host, serves
// the workers, and sends the slices back when the chief asks.
#pragma once
#include <boost/asio/io_context.hpp>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <variant>

#include "base/result.h"
#include "runtime/expulsions.h"
#include "runtime/link_shapes.h"
#include "runtime/log.h"
#include "runtime/peer_connection.h"
#include "runtime/periodic_timer.h"
#include "runtime/round_trip.h"
#include "runtime/server_setup.h"
#include "runtime/shard_host.h"
#include "runtime/state_receiver.h"
#include "runtime/state_sender.h"
#include "runtime/worker_connections.h"
#include "transport/acceptor.h"

namespace motley::runtime {

class ServerTraining final : public transport::AcceptCallbacks, private PeerOwner, private ShardOwner {
 public:
  /// `options`, `chief` and `expulsions` outlive this.
  ServerTraining(boost::asio::io_context& event_loop, const ServerProcessOptions& options, ServerSetup setup, PeerConnection& chief,
                 Expulsions& expulsions, Log log);
  ServerTraining(const ServerTraining&) = delete;
  ServerTraining& operator=(const ServerTraining&) = delete;
  ~ServerTraining() override = default;

  /// Listens for workers and introduces itself to the chief.
  Outcome start();
  /// Serves nobody any more. It may be in the middle of one of its own functions.
  void stop();

  /// As of PeerOwner, for the chief.
  [[nodiscard]] wire::Objection objection_to_chief(const wire::Message& message) const;
  void on_chief_message(wire::Message message);
  std::span<std::byte> receive_state(const wire::StateChunk& chunk, std::size_t bytes);
  void state_received(const wire::StateChunk& chunk);
  void state_sent() { states_.sent(); }

 private:
  /// Slices arrive; messages for the shard wait for the last of them.
  struct Receiving {
    StateReceiver state;
    std::deque<wire::Message> early{};
  };

  [[nodiscard]] ShardHost* shard() { return std::get_if<ShardHost>(&phase_); }
  [[nodiscard]] const ShardHost* shard() const { return std::get_if<ShardHost>(&phase_); }
  void echoed(const wire::Echo& echo);
  void begin_if_complete();
  void to_shard(wire::Message message);
  void shape(PeerConnection& worker, const std::string& node);
  void expel_chief(const std::string& why) { expulsions_.expel(chief_, Expulsions::Peer::identified, "the chief", why); }

  void accepted(std::unique_ptr<transport::Connection> connection) override { workers_.add(std::move(connection)); }
  void refused(const std::string& address, const std::string& reason) override { expulsions_.refused(address, reason); }

  [[nodiscard]] wire::Objection objection(const PeerConnection& from, wire::Lane lane, const wire::Message& message) const override;
  void expel(PeerConnection& worker, const std::string& why) override { workers_.expel(worker, why); }
  void on_message(PeerConnection& from, wire::Message message) override;
  std::span<std::byte> receive_buffer(PeerConnection& from, const wire::Message& head, std::size_t bytes) override;
  void received(PeerConnection& from, const wire::Message& head) override;
  bool accept_in_place(PeerConnection& from, const wire::Message& head, std::span<const std::byte> payload,
                       const transport::BorrowedMemory& borrow) override;
  void sent(PeerConnection& to, std::uint64_t ticket) override;
  void closed(PeerConnection& worker, const Error& why) override;

  void to_chief(const wire::Message& message) override { chief_.send(message); }
  void exported(const std::shared_ptr<Exported>& what) override { states_.send(what); }

  boost::asio::io_context& event_loop_;
  const ServerProcessOptions& options_;
  ServerSetup setup_;
  PeerConnection& chief_;
  Expulsions& expulsions_;
  Log log_;
  ServerLinks links_;
  RoundTrip round_trip_;
  StateSender states_;
  PeriodicTimer watch_;
  std::variant<Receiving, ShardHost> phase_;
  WorkerConnections workers_;  // after `phase_`: connections write to the shard's memory until they are destroyed
  std::unique_ptr<transport::Acceptor> acceptor_;
};

}  // namespace motley::runtime
