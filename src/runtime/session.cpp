#include "runtime/session.h"

#include <fmt/format.h>

#include "transport/connect.h"

namespace motley::runtime {

Session::Session(boost::asio::io_context& event_loop, SessionOptions options, PeerOwner& peers, SessionOwner& owner, const Log& log)
    : event_loop_(event_loop),
      options_(std::move(options)),
      peers_(peers),
      owner_(owner),
      reconnect_(event_loop, options_.reconnect, options_.name, to_text(options_.chief), log),
      join_timer_(event_loop),
      retired_(event_loop) {
  options_.transport.job = transport::any_job;
}

void Session::start() {
  if (!wire::is_name(options_.name))
    return finish(bad_input(fmt::format("--node: found \"{}\", expected at most {} printable ASCII characters",
                                        wire::printable(options_.name, wire::longest_name), wire::longest_name)));
  connect();
}

void Session::connect() {
  transport::connect(event_loop_, options_.chief, options_.transport, bind([this](auto connection) { opened(std::move(connection)); }));
}

void Session::opened(Result<std::unique_ptr<transport::Connection>> connection) {
  if (!connection) return lose(connection.error());
  reconnect_.proven();
  auto& connected = state_.emplace<Connected>(
      Connected{std::make_unique<PeerConnection>(std::move(*connection), event_loop_, options_.transport, peers_), false});
  connected.chief->start();
  connected.chief->send(wire::JoinRequest{options_.name});
  join_timer_.start(options_.join_heartbeat, [this] { owner_.join_heartbeat(); });
}

PeerConnection* Session::chief() const {
  const auto* connected = std::get_if<Connected>(&state_);
  return connected != nullptr ? connected->chief.get() : nullptr;
}

bool Session::has_job() const {
  const auto* connected = std::get_if<Connected>(&state_);
  return connected != nullptr && connected->job_received;
}

wire::Objection Session::objection_to_order(const wire::Message& message) const {
  if (std::holds_alternative<wire::JobDescription>(message) != has_job()) return {};
  return fmt::format("its {} comes {} the job", wire::name_of(message), has_job() ? "after" : "before");
}

std::unique_ptr<PeerConnection> Session::drop_connection() {
  attempt_.cancel();
  join_timer_.stop();
  auto* connected = std::get_if<Connected>(&state_);
  if (connected == nullptr) return nullptr;
  connected->chief->retire();
  return std::move(connected->chief);
}

void Session::lose(const Error& why) {
  if (is_over()) return;
  std::unique_ptr<PeerConnection> chief = drop_connection();
  state_ = Disconnected{};
  owner_.disconnected();
  retired_.add(std::move(chief));
  if (const Outcome trying = reconnect_.lost(why, [this] { connect(); }); !trying) finish(trying);
}

void Session::finish(const Outcome& how) {
  if (is_over()) return;
  std::unique_ptr<PeerConnection> chief = drop_connection();
  state_ = Ended{std::move(chief)};
  reconnect_.cancel();
  owner_.ended(how);
}

}  // namespace motley::runtime
