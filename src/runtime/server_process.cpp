#include "runtime/server_process.h"

#include <fmt/format.h>

#include <utility>

namespace motley::runtime {

ServerProcess::ServerProcess(boost::asio::io_context& event_loop, ServerProcessOptions options, PrepareServer prepare, Log log)
    : event_loop_(event_loop),
      options_(std::move(options)),
      prepare_(std::move(prepare)),
      log_(std::move(log)),
      expulsions_(event_loop, log_),
      session_(event_loop,
               {.name = fmt::format("server {}", options_.server.value),
                .chief = options_.chief,
                .transport = options_.transport,
                .reconnect = options_.reconnect},
               *this, *this, log_),
      retired_(event_loop) {}

void ServerProcess::start(std::function<void(Outcome)> over) {
  over_ = std::move(over);
  session_.start();
}

void ServerProcess::job_received(const wire::JobDescription& description) {
  session_.job_received();
  auto setup = prepare_(description.job);
  if (!setup) return session_.lose(setup.error());
  session_.settled();
  const std::uint32_t servers = setup->layout.servers;
  if (options_.server.value == 0 || options_.server.value >= servers)
    return session_.lose(bad_input(fmt::format("--server: found {}, expected 1 to {}: the job has so many servers, and 0 is the chief's",
                                               options_.server.value, servers - 1)));
  training_ = std::make_unique<ServerTraining>(event_loop_, options_, std::move(*setup), *session_.chief(), expulsions_, log_);
  if (const Outcome listening = training_->start(); !listening) session_.lose(listening.error());
}

void ServerProcess::disconnected() {
  if (training_) training_->stop();
  retired_.add(std::move(training_));
}

wire::Objection ServerProcess::objection(const PeerConnection&, wire::Lane lane, const wire::Message& message) const {
  if (auto why = wire::objection(wire::Sender::servers_chief, lane, message)) return why;
  if (auto why = session_.objection_to_order(message)) return why;
  return training_ ? training_->objection_to_chief(message) : wire::Objection{};
}

void ServerProcess::expel(PeerConnection& peer, const std::string& why) {
  expulsions_.expel(peer, Expulsions::Peer::identified, "the chief", why);
}

void ServerProcess::on_message(PeerConnection&, wire::Message message) {
  if (const auto* description = std::get_if<wire::JobDescription>(&message)) return job_received(*description);
  if (std::holds_alternative<wire::Stop>(message)) return session_.finish(Done{});
  training_->on_chief_message(std::move(message));
}

std::span<std::byte> ServerProcess::receive_buffer(PeerConnection&, const wire::Message& head, std::size_t bytes) {
  return training_->receive_state(std::get<wire::StateChunk>(head), bytes);
}

void ServerProcess::received(PeerConnection&, const wire::Message& head) { training_->state_received(std::get<wire::StateChunk>(head)); }

void ServerProcess::sent(PeerConnection&, std::uint64_t) {
  if (training_) training_->state_sent();
}

void ServerProcess::closed(PeerConnection&, const Error& why) { session_.lose(fmt::format("lost the chief: {}", why.message)); }

}  // namespace motley::runtime
