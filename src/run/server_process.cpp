#include "run/server_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>

#include "base/match.h"
#include "run/carry.h"
#include "transport/connect.h"
#include "wire/frame.h"

namespace motley::run {
namespace {

constexpr std::uint32_t calls = 5;  // to the chief, to learn how far away it is

}  // namespace

ServerProcess::ServerProcess(boost::asio::io_context& pump, ServerProcessOptions options, PrepareServer prepare,
                             std::function<void(const std::string&)> log)
    : pump_(pump),
      options_(std::move(options)),
      prepare_(std::move(prepare)),
      log_(std::move(log)),
      refusals_(pump, log_),
      newcomers_(pump),
      alive_(std::make_shared<bool>(true)) {}

ServerProcess::~ServerProcess() { *alive_ = false; }

void ServerProcess::start(std::function<void(Outcome)> over) {
  over_ = std::move(over);
  transport::connect(pump_, options_.chief, options_.transport, [this, alive = alive_](auto connection) {
    if (!*alive || ended_) return;
    if (!connection) return finish(connection.error());
    chief_ = std::make_unique<transport::Shaped>(std::move(*connection), pump_.get_executor(), transport::Shape{}, options_.transport);
    chief_->start(*this);
    chief_->send(wire::Enquire{fmt::format("server {}", options_.server.value)});
  });
}

void ServerProcess::finish(Outcome how) {
  if (ended_) return;
  ended_ = true;
  if (over_) over_(std::move(how));
}

void ServerProcess::briefed(const wire::Briefing& briefing) {
  auto kit = prepare_(briefing.job);
  if (!kit) return finish(kit.error());
  kit_ = std::move(*kit);
  if (options_.server.value == 0 || options_.server.value >= kit_->layout.servers)
    return finish(bad_input(fmt::format("--server: found {}, expected 1 to {}: the job has so many servers, and 0 is the chief's",
                                        options_.server.value, kit_->layout.servers - 1)));
  links_to_.emplace(pump_.get_executor(), kit_->cluster, options_.server);
  beginning_.values.resize(kit_->layout.values);
  transport::Options options = options_.transport;
  options.job = kit_->job;
  auto acceptor = transport::listen(pump_, options_.listen, options, *this);
  if (!acceptor) return finish(acceptor.error());
  acceptor_ = std::move(*acceptor);
  chief_->reshape({.latency = cluster::distance_between(kit_->cluster, 0, options_.server.value)});
  watch_newcomers();
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
  chief_->send(wire::Serve{options_.server, options_.reach.empty() ? to_text(acceptor_->address()) : options_.reach, round_trip_});
}

void ServerProcess::begin_when_all_is_here() {
  if (shard_ || !all_ || carried_.size() < all_->pieces) return;
  if (carried_.size() !=
      pieces_of(kit_->layout, options_.server, beginning_.moments.has_value(), beginning_.moments && !beginning_.moments->second.empty()))
    return expel(*chief_, "it has sent other slices than those that live here");
  beginning_.version = all_->version;
  if (beginning_.moments) {
    beginning_.moments->updates = all_->optimizer_updates;
    beginning_.moments->rate = all_->rate;
  }
  shard_ = std::make_unique<ShardHost>(pump_, options_.server, kit_->layout, kit_->optimizer, beginning_, static_cast<ShardOwner&>(*this),
                                       options_.store_threads);
  beginning_ = {};
  log_(fmt::format("server {} holds {} of {} slices, listening on {}", options_.server.value, kit_->layout.of(options_.server).size(),
                   kit_->layout.slices.size(), to_text(acceptor_->address())));
  for (const auto& [connection, worker] : attached_early_) shard_->attach(worker, *workers_.at(connection));
  attached_early_.clear();
  for (; !early_.empty(); early_.pop_front()) to_shard(early_.front());
}

// Connections ----------------------------------------------------------------------------------------------------------------------------

void ServerProcess::accepted(std::unique_ptr<transport::Connection> connection) {
  if (ended_) return;
  auto shaped = std::make_unique<transport::Shaped>(std::move(connection), pump_.get_executor(), transport::Shape{}, options_.transport);
  transport::Shaped& held = *shaped;
  workers_[&held] = std::move(shaped);
  heard_[&held] = clock_.now();
  held.start(*this);
}

void ServerProcess::refused(const std::string& address, const std::string& reason) {
  refusals_.say(fmt::format("refused {}: {}", address, reason));
}

void ServerProcess::heard(transport::Connection& from, wire::Message message) {
  if (ended_) return;
  if (const auto why = objection(from, wire::Lane::control, message)) return expel(from, *why);
  if (&from == chief_.get()) return heard_from_chief(std::move(message));
  if (const auto worker = workers_.find(&from); worker != workers_.end()) heard_from_worker(*worker->second, message);
}

void ServerProcess::heard_from_chief(wire::Message message) {
  std::visit(match{[&](const wire::Briefing& m) { briefed(m); },
                   [&](const wire::CarriedAll& m) {
                     all_ = m;
                     begin_when_all_is_here();
                   },
                   [&](const wire::Stop&) { finish(Done{}); }, [&](const wire::Echo& m) { echoed(m); },
                   [&](const wire::Placed& m) {
                     if (m.head_starts.size() == kit_->layout.servers) store::place(kit_->layout, m.head_starts);
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

void ServerProcess::heard_from_worker(transport::Shaped& from, const wire::Message& message) {
  heard_[&from] = clock_.now();
  if (const auto* enquire = std::get_if<wire::Enquire>(&message)) {
    const auto& nodes = kit_->cluster.nodes;
    const auto node = std::find_if(nodes.begin(), nodes.end(), [&](const cluster::Node& n) { return n.name == enquire->node; });
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

std::span<std::byte> ServerProcess::room(transport::Connection& from, const wire::Message& head, std::size_t bytes) {
  if (const auto why = objection(from, wire::Lane::bulk, head)) {
    expel(from, *why);
    return {};
  }
  if (const auto* slice = std::get_if<wire::Carried>(&head))
    return place(kit_->layout, *slice, bytes, beginning_.values, beginning_.moments);
  return shard_->room(from, std::get<wire::Push>(head), bytes);
}

bool ServerProcess::keep(transport::Connection& from, const wire::Message& head, std::span<const std::byte> payload,
                         const transport::Loan& loan) {
  const auto* push = std::get_if<wire::Push>(&head);
  return push != nullptr && !objection(from, wire::Lane::bulk, head) && shard_->keep(from, *push, payload, loan);
}

void ServerProcess::received(transport::Connection& from, const wire::Message& head) {
  if (const auto* push = std::get_if<wire::Push>(&head)) return shard_->received(from, *push);
  const auto& slice = std::get<wire::Carried>(head);
  carried_.emplace(slice.slice, slice.holding);
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
  heard_.erase(&connection);
  sent_away_.erase(&connection);
  const auto found = workers_.find(&connection);
  if (found == workers_.end()) return;
  old_.push_back(std::move(found->second));
  workers_.erase(found);
  boost::asio::post(pump_, [this, alive = alive_] {
    if (*alive) old_.clear();
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
  carry(kit_->layout, options_.server, what->version, what->values->floats(), what->moments ? &*what->moments : nullptr,
        [&](const wire::Carried& head, std::span<const std::byte> payload) {
          under_way_[next_ticket_] = what;
          chief_->send(transport::Parcel{head, payload, head.slice.value, next_ticket_++});
        });
}

}  // namespace motley::run
