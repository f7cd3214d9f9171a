#include "runtime/server_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>

#include "base/match.h"
#include "runtime/state_transfer.h"
#include "transport/connect.h"
#include "wire/frame.h"

namespace motley::runtime {
namespace {

constexpr std::uint32_t calls = 5;  // to the chief, to learn how far away it is

}  // namespace

ServerProcess::ServerProcess(boost::asio::io_context& event_loop, ServerProcessOptions options, PrepareServer prepare,
                             std::function<void(const std::string&)> log)
    : event_loop_(event_loop),
      options_(std::move(options)),
      prepare_(std::move(prepare)),
      log_(std::move(log)),
      refusals_(event_loop, log_),
      join_timer_(event_loop),
      alive_(std::make_shared<bool>(true)) {}

ServerProcess::~ServerProcess() { *alive_ = false; }

void ServerProcess::start(std::function<void(Outcome)> over) {
  over_ = std::move(over);
  transport::connect(event_loop_, options_.chief, options_.transport, [this, alive = alive_](auto connection) {
    if (!*alive || ended_) return;
    if (!connection) return finish(connection.error());
    chief_ =
        std::make_unique<transport::Shaped>(std::move(*connection), event_loop_.get_executor(), transport::Shape{}, options_.transport);
    chief_->start(*this);
    chief_->send(wire::JoinRequest{fmt::format("server {}", options_.server.value)});
  });
}

void ServerProcess::finish(Outcome how) {
  if (ended_) return;
  ended_ = true;
  if (over_) over_(std::move(how));
}

void ServerProcess::job_received(const wire::JobDescription& job_description) {
  auto setup = prepare_(job_description.job);
  if (!setup) return finish(setup.error());
  setup_ = std::move(*setup);
  if (options_.server.value == 0 || options_.server.value >= setup_->layout.servers)
    return finish(bad_input(fmt::format("--server: found {}, expected 1 to {}: the job has so many servers, and 0 is the chief's",
                                        options_.server.value, setup_->layout.servers - 1)));
  links_to_.emplace(event_loop_.get_executor(), setup_->cluster, options_.server);
  initial_state_.values.resize(setup_->layout.values);
  transport::Options options = options_.transport;
  options.job = setup_->job;
  auto acceptor = transport::listen(event_loop_, options_.listen, options, *this);
  if (!acceptor) return finish(acceptor.error());
  acceptor_ = std::move(*acceptor);
  chief_->reshape({.latency = cluster::distance_between(setup_->cluster, 0, options_.server.value)});
  watch_pending();
  call(0);
}

/// Several times there and back; the shortest says how far away the chief is.
void ServerProcess::call(std::uint32_t number) {
  called_ = clock_.now();
  chief_->send(wire::Echo{number});
}

void ServerProcess::echoed(const wire::Echo& echo) {
  if (!acceptor_ || echo.number + 1 != ++echoes_) return;
  round_trip_ = std::min(round_trip_, clock_.now() - called_);
  if (echoes_ < calls) return call(echoes_);
  chief_->send(wire::ServerHello{options_.server, options_.reach.empty() ? to_text(acceptor_->address()) : options_.reach, round_trip_});
}

void ServerProcess::begin_when_all_is_here() {
  if (shard_ || !all_ || received_chunks_.size() < all_->pieces) return;
  if (received_chunks_.size() != pieces_of(setup_->layout, options_.server, initial_state_.moments.has_value(),
                                           initial_state_.moments && !initial_state_.moments->second.empty()))
    return expel(*chief_, "it has sent other slices than those that live here");
  initial_state_.version = all_->version;
  if (initial_state_.moments) {
    initial_state_.moments->updates = all_->optimizer_updates;
    initial_state_.moments->rate = all_->rate;
  }
  shard_ = std::make_unique<ShardHost>(event_loop_, options_.server, setup_->layout, setup_->optimizer, initial_state_,
                                       static_cast<ShardOwner&>(*this), options_.store_threads);
  initial_state_ = {};
  log_(fmt::format("server {} holds {} of {} slices, listening on {}", options_.server.value, setup_->layout.of(options_.server).size(),
                   setup_->layout.slices.size(), to_text(acceptor_->address())));
  for (const auto& [connection, worker] : attached_early_) shard_->attach(worker, *workers_.at(connection));
  attached_early_.clear();
  for (; !early_.empty(); early_.pop_front()) to_shard(early_.front());
}

// Connections ----------------------------------------------------------------------------------------------------------------------------

void ServerProcess::accepted(std::unique_ptr<transport::Connection> connection) {
  if (ended_) return;
  auto shaped =
      std::make_unique<transport::Shaped>(std::move(connection), event_loop_.get_executor(), transport::Shape{}, options_.transport);
  transport::Shaped& held = *shaped;
  workers_[&held] = std::move(shaped);
  last_heard_[&held] = clock_.now();
  held.start(*this);
}

void ServerProcess::refused(const std::string& address, const std::string& reason) {
  refusals_.say(fmt::format("refused {}: {}", address, reason));
}

void ServerProcess::on_message(transport::Connection& from, wire::Message message) {
  if (ended_) return;
  if (const auto why = objection(from, wire::Lane::control, message)) return expel(from, *why);
  if (&from == chief_.get()) return on_chief_message(std::move(message));
  if (const auto worker = workers_.find(&from); worker != workers_.end()) on_worker_message(*worker->second, message);
}

void ServerProcess::on_chief_message(wire::Message message) {
  std::visit(match{[&](const wire::JobDescription& m) { job_received(m); },
                   [&](const wire::StateEnd& m) {
                     all_ = m;
                     begin_when_all_is_here();
                   },
                   [&](const wire::Stop&) { finish(Done{}); }, [&](const wire::Echo& m) { echoed(m); },
                   [&](const wire::SlicePlacement& m) {
                     if (m.head_starts.size() == setup_->layout.servers) store::place(setup_->layout, m.head_starts);
                     chief_->send(m);
                   },
                   [&](const wire::Admitted& m) { admitted(m); },
                   [&](const auto&) {
                     if (shard_)
                       to_shard(message);
                     else
                       early_.push_back(std::move(message));
                   }},
             message);
}

void ServerProcess::on_worker_message(transport::Shaped& from, const wire::Message& message) {
  last_heard_[&from] = clock_.now();
  if (const auto* join_request = std::get_if<wire::JoinRequest>(&message)) {
    const auto& nodes = setup_->cluster.nodes;
    const auto node = std::find_if(nodes.begin(), nodes.end(), [&](const cluster::Node& n) { return n.name == join_request->node; });
    if (auto shape = links_to_->towards(NodeId{static_cast<std::uint32_t>(node - nodes.begin())})) from.reshape(std::move(*shape));
  }
  const auto* claim = std::get_if<wire::Attach>(&message);
  if (claim == nullptr) return;
  switch (attachments_.claimed(from, *claim)) {
    case Attachments::Answer::attach: return attach(from, claim->worker);
    case Attachments::Answer::wait: return;  // for the chief's word
    case Attachments::Answer::refuse: return expel(from, fmt::format("it attaches as worker {}, which it is not", claim->worker.value));
  }
}

std::span<std::byte> ServerProcess::receive_buffer(transport::Connection& from, const wire::Message& head, std::size_t bytes) {
  if (const auto why = objection(from, wire::Lane::bulk, head)) {
    expel(from, *why);
    return {};
  }
  if (const auto* slice = std::get_if<wire::StateChunk>(&head))
    return place(setup_->layout, *slice, bytes, initial_state_.values, initial_state_.moments);
  return shard_->receive_buffer(from, std::get<wire::Push>(head), bytes);
}

bool ServerProcess::accept_in_place(transport::Connection& from, const wire::Message& head, std::span<const std::byte> payload,
                                    const transport::BorrowedMemory& borrow) {
  const auto* push = std::get_if<wire::Push>(&head);
  return push != nullptr && !objection(from, wire::Lane::bulk, head) && shard_->accept_in_place(from, *push, payload, borrow);
}

void ServerProcess::received(transport::Connection& from, const wire::Message& head) {
  if (const auto* push = std::get_if<wire::Push>(&head)) return shard_->received(from, *push);
  const auto& slice = std::get<wire::StateChunk>(head);
  received_chunks_.emplace(slice.slice, slice.state_kind);
  begin_when_all_is_here();
}

void ServerProcess::sent(transport::Connection& to, std::uint64_t ticket) {
  if (&to != chief_.get()) {
    if (shard_) shard_->sent(ticket);
    return;
  }
  under_way_.erase(ticket);
  if (!under_way_.empty()) return;
  exports_.pop_front();
  send_next_export();
}

void ServerProcess::closed(transport::Connection& connection, const Error& why) {
  if (ended_) return;
  if (&connection == chief_.get()) return finish(world_failed(fmt::format("lost the chief: {}", why.message)));
  if (shard_) shard_->detach(connection);
  attached_early_.erase(&connection);
  attachments_.closed(connection);
  last_heard_.erase(&connection);
  sent_away_.erase(&connection);
  const auto found = workers_.find(&connection);
  if (found == workers_.end()) return;
  retired_.push_back(std::move(found->second));
  workers_.erase(found);
  boost::asio::post(event_loop_, [this, alive = alive_] {
    if (*alive) retired_.clear();
  });
}

// The shard's words ----------------------------------------------------------------------------------------------------------------------

void ServerProcess::to_chief(const wire::Message& message) { chief_->send(message); }

void ServerProcess::exported(const std::shared_ptr<Exported>& what) {
  exports_.push_back(what);
  if (exports_.size() == 1) send_next_export();
}

void ServerProcess::send_next_export() {
  if (exports_.empty()) return;
  const std::shared_ptr<const Exported> what = exports_.front();
  send_state(setup_->layout, options_.server, what->version, what->values->floats(), what->moments ? &*what->moments : nullptr,
             [&](const wire::StateChunk& head, std::span<const std::byte> payload) {
               under_way_[next_ticket_] = what;
               chief_->send(transport::BulkMessage{head, payload, head.slice.value, next_ticket_++});
             });
}

}  // namespace motley::runtime
