#include "runtime/chief_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cmath>

#include "base/check.h"
#include "base/match.h"
#include "codec/magnitude.h"
#include "protocol/trace_events.h"
#include "runtime/state_transfer.h"
#include "wire/frame.h"

namespace motley::runtime {
namespace {

constexpr std::chrono::seconds shutdown_time{2};  // for workers to take their Stop

}  // namespace

ChiefProcess::ChiefProcess(boost::asio::io_context& event_loop, ChiefProcessOptions options, protocol::Chief chief,
                           InitialState initial_state, ChiefHooks hooks)
    : event_loop_(event_loop),
      options_(std::move(options)),
      hooks_(std::move(hooks)),
      chief_(std::move(chief)),
      shard_(std::make_unique<ShardHost>(event_loop, ServerId{0}, options_.layout, options_.optimizer, initial_state,
                                         static_cast<ShardOwner&>(*this), options_.store_threads)),
      initial_state_(options_.layout.servers > 1 ? std::move(initial_state) : InitialState{}),
      links_to_(event_loop.get_executor(), options_.cluster, ServerId{0}),
      server_addresses_(options_.layout.servers),
      distances_s_(options_.layout.servers),
      remote_traffic_(options_.layout),
      wanted_(options_.layout, options_.optimizer.kind),
      untrusted_log_(event_loop, hooks_.log),
      ticker_(event_loop),
      alarm_(event_loop, clock_, [this] { tell(protocol::Tick{}); }),
      shutdown_timer_(event_loop),
      alive_(std::make_shared<bool>(true)) {
  if (hooks_.inputs) recorder_.emplace(hooks_.inputs);
  for (const cluster::Node& node : options_.cluster.nodes) node_names_.push_back(node.name);
}

ChiefProcess::~ChiefProcess() { *alive_ = false; }

Outcome ChiefProcess::start(std::function<void(Result<protocol::TrainingOutcome>)> over) {
  over_ = std::move(over);
  auto acceptor = transport::listen(event_loop_, options_.listen, options_.transport, *this);
  if (!acceptor) return acceptor.error();
  acceptor_ = std::move(*acceptor);
  tick();
  return Done{};
}

void ChiefProcess::tick() {
  ticker_.expires_after(options_.cluster.heartbeat / 2);
  ticker_.async_wait([this, alive = alive_](const boost::system::error_code& cancelled) {
    if (cancelled || !*alive || ended_) return;  // to the very end: a server may owe its part of the last model
    tell(protocol::Tick{});
    expel_silent_pending();
    tick();
  });
}

// Connections ----------------------------------------------------------------------------------------------------------------------------

void ChiefProcess::accepted(std::unique_ptr<transport::Connection> connection) {
  if (ended_) return;
  auto shaped =
      std::make_unique<transport::Shaped>(std::move(connection), event_loop_.get_executor(), transport::Shape{}, options_.transport);
  transport::Shaped& held = *shaped;
  Link& link = links_[&held];
  link.connection = std::move(shaped);
  link.id = next_link_++;
  link.last_heard = clock_.now();
  by_id_[link.id] = &link;
  held.start(*this);
}

void ChiefProcess::refused(const std::string& address, const std::string& reason) {
  untrusted_log_.say(fmt::format("refused {}: {}", address, reason));
}

ChiefProcess::Link* ChiefProcess::link_of(const transport::Connection& connection) {
  const auto found = links_.find(&connection);
  return found == links_.end() ? nullptr : &found->second;
}

/// With the reason, which is told once: a connection takes its time to close.
void ChiefProcess::expel(Link& link, const std::string& why) {
  if (std::exchange(link.sent_away, true)) return;
  const std::string& peer = link.connection->peer();
  const std::string sentence = fmt::format("sent {} away: {}", link.name.empty() ? peer : fmt::format("{} at {}", link.name, peer), why);
  link.workers.empty() && !link.server ? untrusted_log_.say(sentence) : hooks_.log(sentence);
  link.connection->close(why);
}

void ChiefProcess::on_message(transport::Connection& from, wire::Message message) {
  Link* link = link_of(from);
  if (link == nullptr) return;
  if (const auto why = objection(*link, wire::Lane::control, message)) return expel(*link, *why);
  link->last_heard = clock_.now();
  std::visit(
      match{[&](const wire::JoinRequest& m) { join_requested(*link, m); },
            [&](const wire::Attach& m) { shard_->attach(m.worker, *link->connection); },
            [&](const wire::Hello& m) { sent_hello(*link, m); }, [&](const wire::Began& m) { on_worker_message(*link, m.worker, m); },
            [&](const wire::Contributed& m) { on_worker_message(*link, m.worker, m); },
            [&](const wire::Leaving& m) { sent_leaving(*link, m); },
            [&](const wire::Heartbeat& m) {
              // The machine records all that it hears: a peer that sends more than it should fills no disk.
              const bool due = !link->heartbeat || link->last_heard - *link->heartbeat >= options_.cluster.heartbeat / 4;
              if (m.worker == wire::no_worker || !due) return;
              link->heartbeat = link->last_heard;
              on_worker_message(*link, m.worker, m);
            },
            [&](const wire::ServerHello& m) { serving(*link, m); },
            [&](const wire::Echo& m) {
              ++link->echoes;
              link->connection->send(m);
            },
            [&](const wire::SlicePlacement&) {
              link->placed = true;
              send_initial_state(*link, *link->server);
            },
            [&](const wire::Gathered& m) {
              remote_traffic_.gathered(m);
              tell(protocol::Received{protocol::peer(m.server), m});
            },
            [&](const wire::AlignmentResult& m) {
              tell(protocol::Received{protocol::peer(m.server), m});
            },
            [&](const wire::Probe& m) {
              tell(protocol::Received{protocol::peer(m.server), m});
            },
            [](const auto&) {}},  // refused above
      message);
}

void ChiefProcess::closed(transport::Connection& connection, const Error& why) {
  Link* link = link_of(connection);
  if (link == nullptr) return;
  shard_->detach(connection);
  const std::uint32_t id = link->id;
  const bool known = link->attempt > 0;  // else the machine does not know of it
  const std::map<WorkerId, Member> workers = link->workers;
  if (link->server && !outcome_)
    return end(
        world_failed(fmt::format("chief: server {} at {} is gone ({}); its part of the model is in the last checkpoint: go on with "
                                 "--resume",
                                 link->server->value, server_addresses_[link->server->value], why.message)));
  if (link->server) by_server_.erase(*link->server);
  awaiting_job_.erase(link->id);
  if (!workers.empty() && !outcome_) hooks_.log(fmt::format("lost {}: {}", connection.peer(), why.message));
  for (const auto& [worker, member] : workers) by_worker_.erase(worker);
  by_id_.erase(id);
  retired_.push_back(std::move(link->connection));
  links_.erase(&connection);
  boost::asio::post(event_loop_, [this, alive = alive_] {
    if (*alive) retired_.clear();
  });
  if (ended_) return;
  for (const auto& [worker, member] : workers) tell(protocol::Lost{worker});
  if (known) tell(protocol::LostPending{id});
  finish_when_done();
}

std::span<std::byte> ChiefProcess::receive_buffer(transport::Connection& from, const wire::Message& head, std::size_t bytes) {
  Link* link = link_of(from);
  if (link == nullptr) return {};
  if (const auto why = objection(*link, wire::Lane::bulk, head)) {
    expel(*link, *why);
    return {};
  }
  if (const auto* push = std::get_if<wire::Push>(&head)) return shard_->receive_buffer(from, *push, bytes);
  return wanted_.receive_buffer(std::get<wire::StateChunk>(head), bytes);
}

bool ChiefProcess::accept_in_place(transport::Connection& from, const wire::Message& head, std::span<const std::byte> payload,
                                   const transport::BorrowedMemory& borrow) {
  const auto* push = std::get_if<wire::Push>(&head);
  const Link* link = link_of(from);
  const bool good =
      push != nullptr && link != nullptr && !objection(*link, wire::Lane::bulk, head);  // else receive_buffer() says what is wrong
  return good && shard_->accept_in_place(from, *push, payload, borrow);
}

void ChiefProcess::received(transport::Connection& from, const wire::Message& head) {
  if (const auto* push = std::get_if<wire::Push>(&head)) return shard_->received(from, *push);
  wanted_.received(std::get<wire::StateChunk>(head));
  collected();
}

void ChiefProcess::sent(transport::Connection&, std::uint64_t ticket) { shard_->sent(ticket); }

// The machine and its answers ------------------------------------------------------------------------------------------------------------

void ChiefProcess::to_chief(const wire::Message& message) { tell(protocol::Received{protocol::peer(ServerId{0}), message}); }

void ChiefProcess::carry_out(const protocol::ChiefAction& action) {
  if (std::holds_alternative<protocol::Released>(action) && !started_) started_ = clock_.now();
  if (const auto* joined = std::get_if<protocol::Joined>(&action)) {
    const auto link = by_worker_.find(joined->worker);
    const auto node = link == by_worker_.end() ? std::nullopt : link->second->node;
    record_trace(trace::Joined{.worker = joined->worker, .node = node_index(joined->node, node)});
    hooks_.log(fmt::format("{} joined as worker {}", joined->node, joined->worker.value));
    nodes_of_workers_[joined->worker] = joined->node;
  }
  if (const auto event = protocol::to_trace_event(action)) record_trace(*event);
  std::visit(
      match{[&](const protocol::Send& a) { send(a); }, [&](const protocol::Joined&) {},
            [&](const protocol::Left& a) {
              remote_traffic_.over(a.worker);
              if (a.stuck) name_stuck(a.worker, *a.stuck);
              log_departure(a);
            },
            [&](const protocol::ServerStuck& a) { give_up_on(a); },
            [&](const protocol::Completed& a) { remote_traffic_.over(a.worker, a.step); },
            [&](const protocol::Cancelled& a) { remote_traffic_.over(a.worker, a.step); },
            [&](const protocol::WakeAt& a) { alarm_.at(a.when); }, [&](const protocol::Discarded&) {}, [&](const protocol::Noted&) {},
            [&](const protocol::Returned& a) {
              for (const trace::EventData& event : protocol::to_trace_events(a)) record_trace(event);
            },
            [&](const protocol::Counted&) {}, [&](const protocol::Released&) {}, [&](const protocol::Held&) {},
            [&](const protocol::Dropped&) {}, [&](const protocol::Idled&) {},
            [&](const protocol::Evaluate& a) { wanted_.want({.version = a.version, .evaluate = a.samples, .at = clock_.now()}); },
            [&](const protocol::Checkpoint& a) { wanted_.want({.version = a.state.version, .save = a.state, .at = clock_.now()}); },
            [&](const protocol::Finished& a) {
              protocol::TrainingOutcome outcome;
              outcome.why = a.why;
              outcome.ended = Instant{options_.trained_before + (started_ ? clock_.now() - *started_ : Duration{0})};
              outcome.updates = chief_.version().value;
              outcome.samples = chief_.ledger().counted();
              outcome.closed_epochs = chief_.ledger().closed_epochs();
              outcome_ = outcome;
              await_shutdown();
              boost::asio::post(event_loop_, [this, alive = alive_] {
                if (*alive) finish_when_done();
              });
            }},
      action);
}

void ChiefProcess::send(const protocol::Send& send) {
  if (send.to.role == protocol::Role::server) {
    if (const auto* update = std::get_if<wire::Apply>(&send.message); update != nullptr && send.to.id == 0) {
      record_trace(trace::Applied{.version = update->version, .parts = update->parts.size(), .rate = update->rate});
      final_values_.reset();  // no longer the last: the end asks for its own
    }
    if (send.to.id == 0) return shard_->receive(send.message);
    if (const auto* release = std::get_if<wire::Release>(&send.message)) remote_traffic_.released(ServerId{send.to.id}, *release);
    const auto server = by_server_.find(ServerId{send.to.id});
    if (server != by_server_.end()) server->second->connection->send(send.message);
    return;
  }
  Link* link = nullptr;
  if (send.to.role == protocol::Role::pending) {
    const auto found = by_id_.find(send.to.id);
    if (found != by_id_.end()) link = found->second;
  } else {
    const auto found = by_worker_.find(WorkerId{send.to.id});
    if (found != by_worker_.end()) link = found->second;
  }
  if (link == nullptr) return;  // gone meanwhile; the machine will hear of it
  if (const auto* given = std::get_if<wire::Welcome>(&send.message)) return welcome(*link, *given);
  link->stopped = link->stopped || std::holds_alternative<wire::Stop>(send.message);
  if (const auto* order = std::get_if<wire::Order>(&send.message)) {
    link->workers.at(order->worker).ordered = order->step.next();
    remote_traffic_.ordered(*order);
    for (const trace::EventData& event : protocol::to_trace_events(*order)) record_trace(event);
  }
  link->connection->send(send.message);
}

// The trace ------------------------------------------------------------------------------------------------------------------------------

void ChiefProcess::record_trace(const trace::EventData& data, std::optional<Instant> at) {
  const Duration trained = started_ ? std::max(at.value_or(clock_.now()) - *started_, Duration{0}) : Duration{0};
  const trace::Event event{Instant{options_.trained_before + trained}, data};
  if (outcome_ && !outcome_recorded_) return after_outcome_.push_back(event);
  hooks_.on_event(event);
}

/// Once, and only when the last model was judged: how a training ended may depend on that.
void ChiefProcess::record_outcome() {
  if (std::exchange(outcome_recorded_, true)) return;
  hooks_.on_event({outcome_->ended, trace::Finished{.why = static_cast<std::uint8_t>(outcome_->why), .samples = outcome_->samples}});
  for (const trace::Event& event : std::exchange(after_outcome_, {})) hooks_.on_event(event);
}

std::uint32_t ChiefProcess::node_index(const std::string& name, std::optional<NodeId> node) {
  if (node) return node->value;
  const auto found = std::find(node_names_.begin(), node_names_.end(), name);
  if (found != node_names_.end()) return static_cast<std::uint32_t>(found - node_names_.begin());
  node_names_.push_back(name);
  return static_cast<std::uint32_t>(node_names_.size() - 1);
}

// Exports, and the end --------------------------------------------------------------------------------------------------------------------

void ChiefProcess::exported(const std::shared_ptr<Exported>& what) {
  wanted_.exported(std::move(*what));
  collected();
}

void ChiefProcess::collected() {
  while (auto wanted = wanted_.take()) {
    if (wanted->version == chief_.version()) final_values_ = wanted->values;
    if (wanted->evaluate && hooks_.evaluate) evaluate(*wanted);
    if (wanted->save && hooks_.save && wanted->moments) save(*wanted);
  }
  finish_when_done();
}

void ChiefProcess::evaluate(const ModelRequest& wanted) {
  ++evaluating_;
  background_thread_.post(
      [this, alive = alive_, values = wanted.values, at = wanted.at, samples = *wanted.evaluate, version = wanted.version] {
        const auto evaluated = std::make_shared<Result<EvaluationResult>>(hooks_.evaluate(std::as_const(*values).floats()));
        const bool finite = codec::all_finite(std::as_const(*values).floats());
        if (evaluated->ok() && !std::isfinite((*evaluated)->loss)) unfit_ = version;
        boost::asio::post(event_loop_, [this, alive, evaluated, at, samples, version, finite] {
          if (!*alive) return;
          --evaluating_;
          if (!*evaluated) return end(evaluated->error());
          record_trace(
              trace::Evaluated{.version = version, .samples = samples, .accuracy = (*evaluated)->accuracy, .loss = (*evaluated)->loss}, at);
          if (!finite || !std::isfinite((*evaluated)->loss)) model_not_finite(version, finite ? "its loss" : "a value of it");
          finish_when_done();
        });
      });
}

void ChiefProcess::save(ModelRequest& wanted) {
  ++evaluating_;
  if (hooks_.saving) hooks_.saving();
  auto saved = std::make_shared<Saved>(Saved{std::move(*wanted.save), wanted.values, std::move(*wanted.moments)});
  background_thread_.post([this, alive = alive_, saved] {
    const bool finite = codec::all_finite(std::as_const(*saved->values).floats()) && codec::all_finite(saved->moments.first) &&
                        codec::all_finite(saved->moments.second);
    const bool fit = finite && unfit_ != saved->chief.version;
    const auto kept = std::make_shared<Outcome>(fit ? hooks_.save(*saved) : Outcome(Done{}));
    boost::asio::post(event_loop_, [this, alive, kept, finite, fit, version = saved->chief.version] {
      if (!*alive) return;
      --evaluating_;
      if (!finite) model_not_finite(version, "a value of it or of its momentum, so that it is not saved,");
      if (fit && hooks_.saved) hooks_.saved(*kept);
      finish_when_done();
    });
  });
}

void ChiefProcess::finish_when_done() {
  if (!outcome_ || ended_ || evaluating_ > 0 || !wanted_.empty()) return;
  record_outcome();
  if (!shutdown_announced_ && !by_worker_.empty()) return;  // they close when they have their Stop
  if (!by_server_.empty() && !stopped_servers_) {           // their parts of the last model are here: they may go
    stopped_servers_ = true;
    for (const auto& [server, link] : by_server_) link->connection->send(wire::Stop{});
    return await_shutdown();
  }
  if (!by_server_.empty() && !shutdown_announced_) return;
  outcome_->events = events_;
  outcome_->bytes_pushed = shard_->bytes_pushed() + remote_traffic_.pushed();
  outcome_->bytes_pulled = shard_->bytes_pulled() + remote_traffic_.pulled();
  end(*outcome_);
}

void ChiefProcess::await_shutdown() {
  shutdown_announced_ = false;
  shutdown_timer_.expires_after(shutdown_time);
  shutdown_timer_.async_wait([this, alive = alive_](const boost::system::error_code& cancelled) {
    if (cancelled || !*alive) return;
    shutdown_announced_ = true;
    finish_when_done();
  });
}

void ChiefProcess::end(Result<protocol::TrainingOutcome> how) {
  if (ended_) return;
  ended_ = true;
  if (outcome_) record_outcome();
  if (recorder_) recorder_->closed(clock_.now());
  ticker_.cancel();
  shutdown_timer_.cancel();
  if (over_) over_(std::move(how));
}

}  // namespace motley::runtime
