#include "run/conductor_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "base/check.h"
#include "base/match.h"
#include "protocol/narration.h"
#include "run/random_key.h"

namespace motley::run {
namespace {

constexpr std::chrono::milliseconds farewell_time{500};  // for stages to take their Stop
constexpr std::chrono::milliseconds doubt{300};          // between who lost a neighbour and who has died
constexpr std::uint32_t most_partings = 10;              // in a row: these nodes do not reach each other

std::string_view reason_of(protocol::Relaid why) {
  switch (why) {
    case protocol::Relaid::begins: return "training begins";
    case protocol::Relaid::unevenness: return "stages have become uneven";
    case protocol::Relaid::newcomer: return "a node has come";
    case protocol::Relaid::loss: return "a stage was lost";
  }
  return "";
}

}  // namespace

ConductorProcess::ConductorProcess(boost::asio::io_context& pump, ConductorProcessOptions options, ConductorHooks hooks)
    : pump_(pump),
      options_(std::move(options)),
      hooks_(std::move(hooks)),
      conductor_(options_.conductor),
      models_(options_.second),
      saved_(options_.conductor.first_mini),
      done_(options_.conductor.first_mini),
      strangers_(pump, hooks_.log),
      ticker_(pump),
      farewell_(pump),
      alive_(std::make_shared<bool>(true)) {}

ConductorProcess::~ConductorProcess() { *alive_ = false; }

Outcome ConductorProcess::start(std::function<void(Result<protocol::Ending>)> over) {
  over_ = std::move(over);
  auto acceptor = transport::listen(pump_, options_.listen, options_.transport, *this);
  if (!acceptor) return acceptor.error();
  acceptor_ = std::move(*acceptor);
  tick();
  return Done{};
}

Duration ConductorProcess::trained() const { return options_.trained_before + (started_ ? clock_.now() - *started_ : Duration{0}); }

void ConductorProcess::tick() {
  ticker_.expires_after(options_.cluster.heartbeat / 2);
  ticker_.async_wait([this, alive = alive_](const boost::system::error_code& cancelled) {
    if (cancelled || !*alive || ended_ || ending_) return;
    attend();
    const Instant now = clock_.now();
    std::vector<transport::Shaped*> silent;
    for (auto& [connection, link] : links_)
      if (link.device && now - link.heard > options_.cluster.silence_deadline) silent.push_back(link.connection.get());
    for (transport::Shaped* connection : silent) connection->abandon("silent for too long");
    expel_silent_newcomers(now);
    if (!started_ && generation_ == 0 && now > Instant{options_.start_deadline}) tell(protocol::WaitedEnough{});
    if (still_since_ && now - *still_since_ > options_.empty_deadline) {
      hooks_.log(fmt::format("standing still for {:.0f} s: giving up; what was kept is saved, go on with --resume",
                             seconds(options_.empty_deadline)));
      save();
      return end_for(protocol::Ended::nobody_left);
    }
    tick();
  });
}

// Connections ----------------------------------------------------------------------------------------------------------------------------

void ConductorProcess::accepted(std::unique_ptr<transport::Connection> connection) {
  if (ended_) return;
  auto shaped = std::make_unique<transport::Shaped>(std::move(connection), pump_.get_executor(), transport::Shape{}, options_.transport);
  transport::Shaped& held = *shaped;
  links_[&held].connection = std::move(shaped);
  links_[&held].heard = clock_.now();
  held.start(*this);
}

void ConductorProcess::refused(const std::string& address, const std::string& reason) {
  strangers_.say(fmt::format("refused {}: {}", address, reason));
}

ConductorProcess::Link* ConductorProcess::link_of_device(std::uint32_t device) {
  for (auto& [connection, link] : links_)
    if (link.device == device) return &link;
  return nullptr;
}

const ConductorProcess::Link* ConductorProcess::link_of_device(std::uint32_t device) const {
  for (const auto& [connection, link] : links_)
    if (link.device == device) return &link;
  return nullptr;
}

void ConductorProcess::heard(transport::Connection& from, wire::Message message) {
  const auto found = links_.find(&from);
  if (found == links_.end()) return;
  Link& link = found->second;
  attend();
  if (const auto why = objection(link, wire::Lane::control, message)) return expel(link, *why);
  link.heard = clock_.now();
  std::visit(match{[&](const wire::Enquire& said) {
                     link.is = wire::Sender::stage;
                     link.name = said.node;
                     link.connection->send(wire::Briefing{options_.job, {}, {}});
                   },
                   [&](const wire::Aboard& said) { aboard(link, said); }, [&](const wire::Committed& said) { committed(said); },
                   [&](const wire::Parted& said) { parted(link, said); }, [&](const wire::Laid& said) { send_part(link, said.generation); },
                   [&](const wire::Doing& said) {
                     if (link.device) doing(*link.device, said);
                   },
                   [](const auto&) {}},  // a Heartbeat; the rest is refused above
             message);
}

void ConductorProcess::aboard(Link& link, const wire::Aboard& said) {
  const auto& nodes = options_.cluster.nodes;
  const auto node = std::find_if(nodes.begin(), nodes.end(), [&](const cluster::Node& n) { return n.name == said.node; });
  const auto device = static_cast<std::uint32_t>(node - nodes.begin());
  if (Link* before = link_of_device(device)) {  // it died, and is back before that was noticed
    before->device.reset();
    before->connection->abandon("silent for too long, and another has come in its place");
    tell(protocol::DeviceGone{device});
  }
  link.device = device;
  link.address = said.address;
  hooks_.log(fmt::format("{} is here, at {}", said.node, said.address));
  if (ending_) return link.connection->send(wire::Stop{});
  link.connection->send(said);
  tell(protocol::DeviceCame{device});
}

void ConductorProcess::closed(transport::Connection& connection, const Error& why) {
  const auto found = links_.find(&connection);
  if (found == links_.end()) return;
  const auto device = found->second.device;
  bury(std::move(found->second.connection));
  links_.erase(found);
  if (ended_ || !device) return;
  if (!ending_) hooks_.log(fmt::format("lost {}: {}", options_.cluster.nodes[*device].name, why.message));
  if (!ending_) tell(protocol::DeviceGone{*device});
  finish_when_done();
}

/// Destroyed when nobody is inside it; what it reads and writes lives as long.
void ConductorProcess::bury(std::unique_ptr<transport::Shaped> connection) {
  old_.push_back(std::move(connection));
  boost::asio::post(pump_, [this, alive = alive_] {
    if (!*alive) return;
    for (auto& old : old_) {
      const transport::Connection* name = old.get();
      old.reset();
      landing_.erase(name);
      leaving_.erase(name);
    }
    old_.clear();
  });
}

/// Whoever has lost a neighbour cannot tell whether it died; that is heard here as well, and comes first.
void ConductorProcess::parted(Link& link, const wire::Parted& said) {
  if (said.generation != generation_ || link.parted == generation_) return;  // it says so once
  link.parted = generation_;
  auto timer = std::make_shared<boost::asio::steady_timer>(pump_, doubt);
  timer->async_wait([this, alive = alive_, timer, generation = said.generation, why = wire::printable(said.why),
                     node = options_.cluster.nodes[*link.device].name](const boost::system::error_code& cancelled) {
    if (cancelled || !*alive || ended_ || ending_ || generation != generation_ || cut_.empty()) return;
    hooks_.log(fmt::format("{} and its neighbour have lost each other: {}", node, why));
    if (++partings_ > most_partings)
      return end(
          world_failed(fmt::format("{} does not reach its neighbour: {}; expected nodes that reach each other where --listen and "
                                   "--reach say",
                                   node, why)));
    tell(protocol::StagesParted{generation});
  });
}

// The machine and its answers ------------------------------------------------------------------------------------------------------------

void ConductorProcess::tell(const protocol::ConductorEvent& event) {
  if (ended_ || ending_) return;
  protocol::ConductorActions actions;
  const std::uint64_t kept_before = conductor_.kept();
  conductor_.step(clock_.now(), event, actions);
  // What all have committed is told before the model of it is saved, and that model is here before others get their parts of it.
  const auto rest = std::stable_partition(actions.begin(), actions.end(), [](const protocol::ConductorAction& action) {
    return std::holds_alternative<protocol::CommittedByAll>(action);
  });
  std::for_each(actions.begin(), rest, [&](const auto& action) { carry_out(action); });
  if (conductor_.kept() != kept_before) take_whole(conductor_.kept());
  std::for_each(rest, actions.end(), [&](const auto& action) { carry_out(action); });
}

void ConductorProcess::carry_out(const protocol::ConductorAction& action) {
  std::visit(match{[&](const protocol::LayOut& a) { lay_out(a); },
                   [&](const protocol::AllowMore& a) {
                     allowed_ = a.allowed;
                     times_.allow(Instant{trained()}, allowed_, done_);
                     for (const plan::Stage& stage : cut_)
                       if (Link* link = link_of_device(stage.device))
                         link->connection->send(wire::Allow{generation_, a.allowed, a.hand_in});
                   },
                   [&](const protocol::CommittedByAll& a) {
                     done_ = a.mini_batches;
                     done_at_ = Instant{trained()};
                     narrate({.at = done_at_, .kind = trace::Kind::applied, .version = {a.mini_batches}, .first = cut_.size()});
                   },
                   [&](const protocol::StandsStill&) {
                     cut_.clear();
                     models_.begin({});
                     generation_ = conductor_.generation();
                     still_since_ = clock_.now();
                     hooks_.log("the nodes that are here cannot hold the model: waiting for one to come");
                   },
                   [&](const protocol::StageExpelled& a) { expelled(a); }, [&](const protocol::NobodyMoves& a) { nobody_moves(a); },
                   [&](const protocol::PipelineDone&) { end_for(protocol::Ended::every_sample_counted); }},
             action);
}

void ConductorProcess::lay_out(const protocol::LayOut& laid) {
  still_since_.reset();
  if (!started_) started_ = clock_.now();
  flush_until(Instant::max());
  const std::uint64_t lost = done_ - std::min(done_, laid.from);
  again_ += lost;
  done_ = laid.from;
  generation_ = laid.generation;
  cut_ = laid.cut;
  places_ = options_.places(cut_);
  micro_batches_ = laid.schedule.micro_batches;
  allowed_ = laid.allowed;
  committed_.assign(cut_.size(), laid.from);
  keys_.resize(cut_.size());
  for (std::uint64_t& key : keys_) key = random_key();
  models_.begin(places_);
  const Duration now = trained();  // where the stages' clocks begin: whatever they do is told after it
  times_.begin(Instant{now}, cut_.size(), allowed_);
  peak_stash_bytes_.resize(std::max(peak_stash_bytes_.size(), cut_.size()));
  hooks_.log(fmt::format("{}: {} stages from mini-batch {}{}", reason_of(laid.why), cut_.size(), laid.from,
                         lost > 0 ? fmt::format("; {} are done again", lost) : ""));
  wire::Lay lay;
  lay.generation = generation_;
  for (const plan::Stage& stage : cut_) lay.sections.push_back({stage.first, stage.last, stage.device});
  lay.micro_batches = laid.schedule.micro_batches;
  lay.most_held = laid.schedule.most_held;
  lay.ahead = laid.schedule.ahead;
  lay.forwards_first = laid.schedule.forwards_first;
  lay.weights_apart = laid.schedule.weights_apart;
  lay.predicts = laid.schedule.predicts;
  lay.clips = laid.schedule.clips;
  lay.softens = laid.schedule.softens;
  lay.from = laid.from;
  lay.allowed = laid.allowed;
  lay.moments = !options_.model.first.empty();
  for (std::uint32_t s = 0; s < cut_.size(); ++s) {
    Link* link = link_of_device(cut_[s].device);
    check(link != nullptr, "whoever is laid out is there");
    lay.stage = s;
    const Link* next = s + 1 < cut_.size() ? link_of_device(cut_[s + 1].device) : nullptr;
    lay.next = next != nullptr ? next->address : "";
    lay.kept_bytes = plan::Sums(options_.conductor.problem.blocks).kept_bytes(cut_[s].first, cut_[s].last);
    lay.parts_s = plan::parts_s(options_.conductor.problem, cut_[s]);
    lay.training = now;
    lay.before_key = s > 0 ? keys_[s - 1] : 0;
    lay.next_key = keys_[s];
    link->connection->send(lay);
  }
  for (trace::Event& event : protocol::narrated(laid)) {
    event.at = Instant{now};
    narrate(event);
  }
}

/// It has heard its Lay: what comes now is not taken for something else's.
void ConductorProcess::send_part(Link& link, std::uint32_t generation) {
  if (generation != generation_ || link.laid == generation) return;  // its part comes once
  const auto found = std::find_if(cut_.begin(), cut_.end(), [&](const plan::Stage& stage) { return stage.device == *link.device; });
  if (found == cut_.end()) return;
  link.laid = generation;
  const auto s = static_cast<std::uint32_t>(found - cut_.begin());
  const std::size_t piece = std::max<std::size_t>(1, options_.transport.slice_bytes / sizeof(float));
  const auto part = std::make_shared<const store::StagePart>(options_.model.part(places_[s]));
  const auto send = [&](const std::vector<float>& numbers, wire::Holding holding) {
    for (std::size_t at = 0; at < numbers.size(); at += piece) {
      leaving_[link.connection.get()][next_ticket_] = part;
      link.connection->send(transport::Parcel{wire::StageSlice{generation_, s, conductor_.kept(), holding, at},
                                              std::as_bytes(std::span(numbers).subspan(at, std::min(piece, numbers.size() - at))), 0,
                                              next_ticket_++});
    }
  };
  send(part->values, wire::Holding::values);
  send(part->first, wire::Holding::first);
  send(part->second, wire::Holding::second);
}

void ConductorProcess::sent(transport::Connection& to, std::uint64_t ticket) {
  slices_moved_ = true;
  if (const auto found = leaving_.find(&to); found != leaving_.end()) found->second.erase(ticket);
}

void ConductorProcess::committed(const wire::Committed& said) {
  if (said.generation != generation_ || cut_.empty()) return;
  committed_[said.stage] = said.mini_batches;
  partings_ = 0;
  double busy_s = 0;
  std::uint64_t micros = 0;
  std::vector<wire::Did> parts = said.parts;
  const Instant last = times_.believe(Instant{trained()}, said.stage, micro_batches_, parts);
  for (const wire::Did& did : parts) {
    busy_s += seconds(did.ended - did.began);
    micros += did.part == 2 ? 1 : 0;
    narrate({.at = Instant{did.began},
             .kind = trace::Kind::part_began,
             .worker = {said.stage},
             .step = {did.micro},
             .version = {did.version},
             .first = did.part,
             .last = did.late});
    narrate({.at = Instant{did.ended}, .kind = trace::Kind::part_ended, .worker = {said.stage}, .step = {did.micro}, .first = did.part});
  }
  narrate({.at = last, .kind = trace::Kind::committed, .worker = {said.stage}, .version = {said.mini_batches}});
  peak_stash_bytes_[said.stage] = std::max(peak_stash_bytes_[said.stage], static_cast<double>(said.stash_bytes));
  if (!said.finite && !ending_)
    return diverged(fmt::format("stage {} on node {} was given or has computed values that are not finite, by mini-batch {}",
                                said.stage + 1, options_.cluster.nodes[cut_[said.stage].device].name, said.mini_batches));
  tell(protocol::StageCommitted{said.generation, said.stage, said.mini_batches, busy_s, micros});
  flush_until(times_.told_until());
}

// The trace ------------------------------------------------------------------------------------------------------------------------------

void ConductorProcess::narrate(trace::Event event) { told_later_.emplace(event.at, event); }

void ConductorProcess::flush_until(Instant when) {
  while (!told_later_.empty() && told_later_.begin()->first <= when) {
    hooks_.told(told_later_.begin()->second);
    told_later_.erase(told_later_.begin());
  }
}

// The end --------------------------------------------------------------------------------------------------------------------------------

void ConductorProcess::interrupt() {
  if (ended_ || ending_) return;
  save();
  end_for(protocol::Ended::interrupted);
}

/// Evaluating and saving go on; training does not.
void ConductorProcess::end_for(protocol::Ended why) {
  ending_ = why;
  ending_at_ = Instant{trained()};
  finish_when_done();
}

/// What was kept last is finite, and is what is left.
void ConductorProcess::diverged(const std::string& what) {
  if (ended_ || ending_ == protocol::Ended::diverged) return;
  hooks_.log(fmt::format("training diverged: {}", what));
  if (!ending_) return end_for(protocol::Ended::diverged);
  ending_ = protocol::Ended::diverged;
  finish_when_done();
}

void ConductorProcess::finish_when_done() {
  if (!ending_ || ended_ || judging_ > 0) return;
  flush_until(Instant::max());
  protocol::Ending ending;
  ending.why = *ending_;
  ending.ended = ending_at_;
  ending.updates = conductor_.kept();  // what was done since is in no model that is left
  ending.samples = samples_of(ending.updates);
  if (again_ > 0) hooks_.log(fmt::format("{} mini-batches were done again after losses", again_));
  hooks_.told({.at = ending.ended, .kind = trace::Kind::finished, .why = static_cast<std::uint8_t>(*ending_), .first = ending.samples});
  for (auto& [connection, link] : links_) link.connection->send(wire::Stop{});
  ended_ = true;
  ticker_.cancel();
  farewell_.expires_after(farewell_time);
  farewell_.async_wait([this, alive = alive_, ending](const boost::system::error_code&) {
    if (*alive && over_) over_(ending);
  });
}

}  // namespace motley::run
