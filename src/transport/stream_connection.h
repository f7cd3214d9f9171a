// A Connection over two lanes to one peer, control and bulk: this class holds the rules, the lanes move the bytes.
//
//   open --close(), a broken peer--> closing --peer's end, linger--> ended --> closed()
//   open --a lane lost, abandon(), a bound hit--------------------> ended
//
// While closing, queued messages and the reason are still sent, and received ones are ignored. The peer answers a goodbye by ending its
// side.
#pragma once
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <string>

#include "transport/anchor.h"
#include "transport/bulk_lane.h"
#include "transport/control_lane.h"
#include "transport/credits.h"
#include "transport/outbox.h"
#include "transport/transport.h"

namespace motley::transport {

class StreamConnection final : public Connection, private ControlLane::Owner, private BulkLane::Owner {
 public:
  /// Both lanes are connected, authenticated and belong to the same peer.
  StreamConnection(Stream control, std::shared_ptr<BulkLane> bulk, const Options& options);
  StreamConnection(const StreamConnection&) = delete;
  StreamConnection& operator=(const StreamConnection&) = delete;
  ~StreamConnection() override;

  void start(ConnectionCallbacks& callbacks) override;
  void send(const wire::Message& message) override;
  void send(const BulkMessage& bulk_message) override;
  void hold() override;
  void resume() override;
  void close(const std::string& reason) override;
  void abandon(const std::string& reason) override;
  [[nodiscard]] bool supports_borrowing() const override { return bulk_->supports_borrowing(); }
  [[nodiscard]] const std::string& peer() const override { return peer_; }
  [[nodiscard]] Queued queued() const override;

 private:
  enum class State { open, closing, ended };

  void control_received(ControlFrame what) override;
  void control_lost(const Error& why) override;
  void on_frame(wire::Message message);
  void on_frame(const Credit& credit);
  void on_frame(const Goodbye& goodbye);

  std::optional<std::span<std::byte>> place(const wire::Message& head, std::size_t payload_bytes, Delivery how) override;
  void placed(const wire::Message& head, std::size_t payload_bytes, Delivery how) override;
  bool accept_in_place(const wire::Message& head, std::span<const std::byte> payload, const BorrowedMemory& borrow) override;
  void damaged(const Error& why) override;
  void bulk_lost(const Error& why) override;

  std::optional<BulkMessage> next_bulk_message() override;
  void borrowed(const BulkMessage& bulk_message) override;
  void written(const BulkMessage& bulk_message) override;

  void grant_what_is_owed();
  [[nodiscard]] Error beyond_the_window(std::size_t payload_bytes) const;
  void begin_closing(const Error& why);
  void stop_bulk();
  void end(const Error& why);
  void tell_closed();

  std::string peer_;
  Options options_;
  asio::any_io_executor executor_;
  std::shared_ptr<ControlLane> control_;
  std::shared_ptr<BulkLane> bulk_;
  asio::steady_timer linger_;

  ConnectionCallbacks* callbacks_ = nullptr;  // null before start()
  State state_ = State::open;
  Error why_;  // once not open
  Outbox outbox_;
  SendCredits sending_;
  ReceiveCredits receiving_;
  Anchor<StreamConnection> anchor_{*this};
};

}  // namespace motley::transport
