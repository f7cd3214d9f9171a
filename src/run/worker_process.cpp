#include "run/worker_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <iterator>

#include "base/check.h"
#include "base/match.h"
#include "codec/codec.h"
#include "transport/connect.h"

namespace motley::run {
namespace {

std::unique_ptr<transport::Shaped> unshaped(std::unique_ptr<transport::Connection> connection, boost::asio::io_context& pump,
                                            const transport::Options& options) {
  return std::make_unique<transport::Shaped>(std::move(connection), pump.get_executor(), transport::Shape{}, options);
}

}  // namespace

WorkerProcess::WorkerProcess(boost::asio::io_context& pump, WorkerProcessOptions options, PrepareWorker prepare, Log log)
    : pump_(pump),
      options_(std::move(options)),
      prepare_(std::move(prepare)),
      log_(std::move(log)),
      reconnect_(pump, options_.reconnect, options_.node, to_text(options_.chief), log_),
      heartbeat_(pump),
      newcomer_(pump),
      alive_(std::make_shared<bool>(true)) {}

WorkerProcess::~WorkerProcess() { *alive_ = false; }

void WorkerProcess::start(std::function<void(Outcome)> over) {
  over_ = std::move(over);
  if (!wire::is_name(options_.node))
    return finish(bad_input(fmt::format("--node: found \"{}\", expected at most {} printable ASCII characters",
                                        wire::printable(options_.node, wire::longest_name), wire::longest_name)));
  reach();
}

void WorkerProcess::leave() {
  if (ended_ || leaving_) return;
  leaving_ = true;
  if (life_ && life_->machine)
    tell(protocol::AskedToLeave{});
  else
    finish(Done{});
}

// Reaching the others --------------------------------------------------------------------------------------------------------------------

void WorkerProcess::reach() {
  if (ended_) return;
  transport::Options options = options_.transport;
  options.job = kit_ ? kit_->job : transport::JobHash{};
  const std::uint32_t life = ++lives_;
  transport::connect(pump_, options_.chief, options, [this, alive = alive_, life](auto connection) {
    if (*alive && !ended_ && life == lives_) reached(std::move(connection));
  });
}

void WorkerProcess::reached(Result<std::unique_ptr<transport::Connection>> connection) {
  if (!connection) return lose(connection.error());
  reconnect_.proven();
  life_ = Life{};
  life_->chief = unshaped(std::move(*connection), pump_, options_.transport);
  life_->chief->start(*this);
  life_->chief->send(wire::Enquire{options_.node});
  stay_known();
}

void WorkerProcess::lose(const Error& why) {
  if (ended_) return;
  ++lives_;
  heartbeat_.cancel();
  newcomer_.cancel();
  if (desk_) desk_->abandon();
  if (life_) old_.push_back({std::move(leaving_slices_), std::move(*life_)});
  life_.reset();
  leaving_slices_.clear();
  boost::asio::post(pump_, [this, alive = alive_] {
    if (*alive) old_.clear();
  });
  if (leaving_) return finish(Done{});
  if (const Outcome trying = reconnect_.lost(why, [this] { reach(); }); !trying) finish(trying.error());
}

void WorkerProcess::finish(Outcome how) {
  if (ended_) return;
  ended_ = true;
  ++lives_;
  reconnect_.cancel();
  heartbeat_.cancel();
  newcomer_.cancel();
  if (desk_) desk_->abandon();
  if (over_) over_(std::move(how));
}

void WorkerProcess::briefed(const wire::Briefing& briefing) {
  life_->briefed = true;
  if (job_ == briefing.job && head_starts_ == briefing.head_starts) return prepared(WorkerKit{}, briefing);
  log_("preparing data and model");
  preparing_.post([this, alive = alive_, life = lives_, briefing] {
    auto kit = std::make_shared<Result<WorkerKit>>(prepare_(briefing.job));
    boost::asio::post(pump_, [this, alive, life, kit, briefing] {
      if (*alive && life == lives_) prepared(std::move(*kit), briefing);
    });
  });
}

void WorkerProcess::prepared(Result<WorkerKit> kit, const wire::Briefing& briefing) {
  if (!kit) return finish(kit.error());
  if (job_ != briefing.job || head_starts_ != briefing.head_starts) {
    job_ = briefing.job;
    head_starts_ = briefing.head_starts;
    if (head_starts_.size() == kit->desk.layout.servers) store::place(kit->desk.layout, briefing.head_starts);
    epoch_samples_ = kit->desk.epoch_samples;
    desk_ = std::make_unique<Desk>(pump_, std::move(kit->desk), static_cast<DeskOwner&>(*this));
    kit_.emplace(std::move(*kit));
    link_.reset();
    if (kit_->node && kit_->cluster.nodes[kit_->node->value].device == cluster::DeviceKind::emulated)
      link_.emplace(pump_.get_executor(), kit_->cluster, *kit_->node);
  }
  if (std::max<std::size_t>(briefing.servers.size(), 1) != desk_->layout().servers)
    return lose(fmt::format("the chief names {} servers, its job has {}", briefing.servers.size(), desk_->layout().servers));
  if (link_) life_->chief->reshape(link_->shape(0));
  life_->server_addresses = briefing.servers;
  desk_->warm_up([this, life = lives_](const std::optional<cluster::Affine>& pace) {
    pace_ = pace;
    if (!ended_ && life == lives_) reach_servers();
  });
}

void WorkerProcess::reach_servers() {
  const std::size_t servers = std::max<std::size_t>(life_->server_addresses.size(), 1);
  life_->servers.resize(servers);
  life_->servers_missing = servers - 1;
  if (life_->servers_missing == 0) return begin();
  for (std::uint32_t s = 1; s < servers; ++s) reach_server(s);
}

void WorkerProcess::reach_server(std::uint32_t server) {
  const auto address = transport::parse_address(life_->server_addresses[server]);
  if (!address) return lose(fmt::format("server {}: {}", server, address.error().message));
  transport::Options options = options_.transport;
  options.job = kit_->job;
  transport::connect(pump_, *address, options, [this, alive = alive_, life = lives_, server](auto connection) {
    if (!*alive || ended_ || life != lives_) return;
    if (!connection) return lose(fmt::format("server {}: {}", server, connection.error().message));
    auto& held = life_->servers[server];
    held = unshaped(std::move(*connection), pump_, options_.transport);
    if (link_) held->reshape(link_->shape(server));
    held->start(*this);
    held->send(wire::Enquire{options_.node});  // so that it knows whose links to emulate
    if (--life_->servers_missing == 0) begin();
  });
}

void WorkerProcess::begin() {
  protocol::WorkerOptions worker;
  worker.node = options_.node;
  worker.seat = kit_->seat;
  worker.most_samples = kit_->most_samples;
  worker.grain = std::max(desk_->grain(), 1U);
  if (pace_) {
    worker.samples_per_second = 1 / pace_->per_sample;
    worker.overhead_s = pace_->fixed;
  }
  worker.halves = desk_->halves();
  worker.near = lends(desk_->layout().values);
  for (std::uint32_t s = 0; s < life_->servers.size(); ++s) worker.near = worker.near && to_server(s)->lends();
  for (const store::Slice& slice : desk_->layout().slices) worker.servers_of_slices.push_back(slice.server);
  worker.heartbeat = kit_->cluster.heartbeat;
  worker.patience = from_seconds(60);  // nothing is lost on a connection that stands; a chief may wait long for its quorum
  worker.start_early = desk_->streams();
  life_->machine.emplace(std::move(worker));
  desk_->start_over();
  reconnect_.settled();
  tell(protocol::Started{});
  tick();
}

void WorkerProcess::tick() {
  heartbeat_.expires_after(kit_->cluster.heartbeat / 2);
  heartbeat_.async_wait([this, alive = alive_, life = lives_](const boost::system::error_code& cancelled) {
    if (cancelled || !*alive || ended_ || life != lives_) return;
    tell(protocol::TimePassed{});
    if (!ended_ && life == lives_) tick();
  });
}

// The machine and its answers ------------------------------------------------------------------------------------------------------------

void WorkerProcess::tell(const protocol::WorkerEvent& event) {
  if (!life_ || !life_->machine) return;
  protocol::WorkerActions actions;
  life_->machine->step(clock_.now(), event, actions);
  const std::uint32_t life = lives_;
  for (const auto& action : actions) {
    if (life != lives_ || ended_) return;
    carry_out(action);
  }
  if (life == lives_ && !ended_ && desk_->begins_ahead()) foretell();
}

/// What is sure to come next can be begun before what is computed now has ended.
void WorkerProcess::foretell() {
  const wire::Order* next = life_->machine->upcoming();
  if (next == nullptr || life_->foretold == next->step) return;
  const auto values = life_->arrivals.find({next->worker, next->parameters});
  if (values == life_->arrivals.end()) return;
  life_->foretold = next->step;
  desk_->foretell(*next, values->second);
}

void WorkerProcess::carry_out(const protocol::WorkerAction& action) {
  std::visit(match{[&](const protocol::Send& a) { send(a); }, [&](const protocol::Compute& a) { compute(a); },
                   [&](const protocol::Abandon&) {
                     life_->computing.reset();
                     desk_->abandon();
                   },
                   [&](const protocol::AwaitDevice&) {
                     desk_->when_free([this, life = lives_] {
                       if (!ended_ && life == lives_) tell(protocol::DeviceFree{});
                     });
                   },
                   [&](const protocol::Quit&) {
                     // Let the last words leave: close() sends what waits, closed() ends us.
                     leaving_ = true;
                     life_->chief->close("done");
                   }},
             action);
}

transport::Connection* WorkerProcess::to_server(std::uint32_t server) const {
  return server == 0 ? life_->chief.get() : life_->servers[server].get();
}

void WorkerProcess::send(const protocol::Send& send) {
  const auto* ordered = std::get_if<wire::Push>(&send.message);
  if (ordered == nullptr) return life_->chief->send(send.message);
  check(life_->computing != nullptr, "what is pushed was computed");
  wire::Push push = *ordered;
  if (const std::uint8_t bits = life_->computing->coded; bits > 0) push.bits = bits;
  const store::Slice& slice = desk_->layout()[push.slice];
  Leaving leaving{life_->computing->out, nullptr};
  std::span<const std::byte> payload = std::as_const(*leaving.flat).bytes(slice.offset, slice.count);
  if (life_->computing->coded > 0) {
    payload = payload.first(codec::encoded_bytes(slice.bits(push.bits), slice.count));
  } else if (slice.bits(push.bits) != plain_bits || (life_->push && life_->push->owes(push.slice))) {
    leaving.coded = coded(push);
    payload = *leaving.coded;
  }
  leaving_slices_[next_ticket_] = std::move(leaving);
  to_server(send.to.id)->send(transport::Parcel{push, payload, desk_->layout()[push.slice].priority, next_ticket_++, /*lend=*/true});
}

std::shared_ptr<std::vector<std::byte>> WorkerProcess::coded(const wire::Push& push) {
  const Computation& computation = *life_->computing;
  if (!life_->push) life_->push = std::make_unique<store::PushStream>(desk_->layout());
  if (life_->pushing != push.step) {
    life_->pushing = push.step;
    life_->push->begin(desk_->local_steps() ? 0 : computation.samples, computation.order.rate);  // a delta does not scale with the rate
  }
  auto bytes = std::make_shared<std::vector<std::byte>>();
  life_->push->encode(push.slice, push.bits, std::as_const(*computation.out).floats(), *bytes);
  return bytes;
}

void WorkerProcess::compute(const protocol::Compute& order) {
  const std::pair key{order.order.worker, order.order.parameters};
  auto found = life_->arrivals.find(key);
  check(found != life_->arrivals.end(), "what is computed on has begun to arrive");
  auto computation = std::make_shared<Computation>();
  computation->order = order.order;
  computation->samples = order.order.lease.size();
  computation->values = found->second;
  computation->out = make_lendable_buffer(desk_->layout().values);
  computation->began = training_->now();
  forget_arrivals_before(found);
  life_->computing = computation;
  desk_->compute(computation, *training_);
}

void WorkerProcess::produced(const std::shared_ptr<Computation>& computation, SliceId slice) {
  if (life_ && life_->computing == computation) tell(protocol::Produced{computation->order.step, slice});
}

void WorkerProcess::computed(const std::shared_ptr<Computation>& computation, const store::Worth& worth, const DeskTime& time) {
  if (!life_ || life_->computing != computation) return;
  const double residual = worth.loss.coded ? worth.loss.residual : life_->push ? life_->push->residual_ratio() : 0;
  tell(protocol::Computed{computation->order.step, worth.loss.sum, worth.squared_norm, worth.finite, time.compute,
                          static_cast<std::uint32_t>(worth.samples), residual, worth.most_samples, worth.moved, time.stood,
                          time.first_of_size});
  if (life_ && life_->computing == computation) life_->computing.reset();  // else the next step is on the desk already
}

void WorkerProcess::failed(const std::string& what) {
  finish(world_failed(fmt::format("{}: computing a step failed: {}", options_.node, what)));
}

// What comes in --------------------------------------------------------------------------------------------------------------------------

void WorkerProcess::heard(transport::Connection& from, wire::Message message) {
  if (!life_ || !is_ours(from)) return;
  if (const auto why = objection(from, wire::Lane::control, message)) return from.close(*why);
  if (const auto* briefing = std::get_if<wire::Briefing>(&message)) return briefed(*briefing);
  if (const auto* order = std::get_if<wire::Order>(&message)) training_.emplace(order->training);  // the chief's clock, less the way here
  tell(protocol::Arrived{message});
  // The servers must know who we are before they can send us anything.
  const auto* welcome = std::get_if<wire::Welcome>(&message);
  if (welcome == nullptr || !life_ || !life_->machine || life_->machine->id() != welcome->worker || life_->attached == welcome->worker)
    return;
  life_->attached = welcome->worker;
  for (std::uint32_t s = 0; s < life_->servers.size(); ++s) to_server(s)->send(wire::Attach{welcome->worker, welcome->key});
}

void WorkerProcess::sent(transport::Connection&, std::uint64_t ticket) { leaving_slices_.erase(ticket); }

void WorkerProcess::closed(transport::Connection& connection, const Error& why) {
  if (ended_ || !life_) return;
  if (leaving_) return finish(Done{});
  const bool chief = &connection == life_->chief.get();
  if (why.next == Next::tell_user) return finish(why);
  lose(fmt::format("lost {}: {}", chief ? "the chief" : "a server", why.message));
}

}  // namespace motley::run
