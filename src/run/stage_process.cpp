#include "run/stage_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <iterator>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/match.h"
#include "transport/connect.h"

namespace motley::run {

using plan::Part;

StageProcess::StageProcess(boost::asio::io_context& pump, StageProcessOptions options, PrepareStage prepare,
                           std::function<void(const std::string&)> log)
    : pump_(pump),
      options_(std::move(options)),
      prepare_(std::move(prepare)),
      log_(std::move(log)),
      reconnect_(pump, options_.reconnect, options_.node, to_text(options_.chief), log_),
      refusals_(pump, log_),
      heartbeat_(pump),
      alive_(std::make_shared<bool>(true)) {}

StageProcess::~StageProcess() { *alive_ = false; }

void StageProcess::start(std::function<void(Outcome)> over) {
  over_ = std::move(over);
  if (!wire::is_name(options_.node))
    return finish(bad_input(fmt::format("--node: found \"{}\", expected at most {} printable ASCII characters",
                                        wire::printable(options_.node, wire::longest_name), wire::longest_name)));
  reach();
}

void StageProcess::finish(Outcome how) {
  if (ended_) return;
  ended_ = true;
  ++attempts_;
  reconnect_.cancel();
  heartbeat_.cancel();
  if (desk_) desk_->stop();
  if (over_) over_(std::move(how));
}

// Reaching the conductor -----------------------------------------------------------------------------------------------------------------

void StageProcess::reach() {
  if (ended_) return;
  transport::Options options = options_.transport;
  options.job = kit_ ? kit_->job : transport::any_job;
  transport::connect(pump_, options_.chief, options, [this, alive = alive_, attempt = ++attempts_](auto connection) {
    if (*alive && !ended_ && attempt == attempts_) reached(std::move(connection));
  });
}

void StageProcess::reached(Result<std::unique_ptr<transport::Connection>> connection) {
  if (!connection) return lose(connection.error());
  reconnect_.proven();
  chief_ = std::make_unique<transport::Shaped>(std::move(*connection), pump_.get_executor(), transport::Shape{}, options_.transport);
  briefed_ = aboard_ = false;
  chief_->start(*this);
  chief_->send(wire::Enquire{options_.node});
}

void StageProcess::lose(const Error& why) {
  if (ended_) return;
  ++attempts_;
  heartbeat_.cancel();
  drop_life();
  drop_neighbours_before(std::numeric_limits<std::uint32_t>::max());  // another conductor counts its generations anew
  if (chief_) bury(std::move(chief_));
  if (const Outcome trying = reconnect_.lost(why, [this] { reach(); }); !trying) finish(trying.error());
}

void StageProcess::briefed(const wire::Briefing& briefing) {
  briefed_ = true;
  stay_known();
  if (job_ == briefing.job) return prepared(StageKit{}, briefing.job);
  log_("preparing data and model");
  preparing_.post([this, alive = alive_, attempt = attempts_, job = briefing.job] {
    auto kit = std::make_shared<Result<StageKit>>(prepare_(job));
    boost::asio::post(pump_, [this, alive, attempt, kit, job] {
      if (*alive && !ended_ && attempt == attempts_) prepared(std::move(*kit), job);
    });
  });
}

void StageProcess::prepared(Result<StageKit> kit, const std::string& job) {
  if (!kit) return finish(kit.error());
  if (job_ != job) {
    job_ = job;
    kit_.emplace(std::move(*kit));
    desk_ = std::make_unique<StageDesk>(pump_, kit_->emulated, static_cast<StageDeskOwner&>(*this));
    transport::Options options = options_.transport;
    options.job = kit_->job;
    auto acceptor = transport::listen(pump_, options_.listen, options, *this);
    if (!acceptor) return finish(acceptor.error());
    acceptor_ = std::move(*acceptor);
  }
  // A device that has hung is of no use to anybody before it moves again.
  desk_->when_free([this, attempt = attempts_] {
    if (ended_ || attempt != attempts_) return;
    aboard_ = true;
    chief_->send(wire::Aboard{options_.node, options_.reach.empty() ? to_text(acceptor_->address()) : options_.reach});
    tick();
  });
}

void StageProcess::tick() {
  heartbeat_.expires_after(kit_->cluster.heartbeat / 2);
  heartbeat_.async_wait([this, alive = alive_, attempt = attempts_](const boost::system::error_code& cancelled) {
    if (cancelled || !*alive || ended_ || attempt != attempts_ || !chief_) return;
    const StageDesk::Doing doing = desk_->doing();
    chief_->send(wire::Doing{life_ ? life_->laid.generation : 0, doing.done, doing.busy});
    expel_idle_neighbours();
    tick();
  });
}

// Being a stage --------------------------------------------------------------------------------------------------------------------------

/// Destroyed when nobody is inside it; what it reads and writes lives as long.
void StageProcess::bury(ConnectionPointer connection) {
  old_.push_back(std::move(connection));
  boost::asio::post(pump_, [this, alive = alive_] {
    if (!*alive) return;
    for (ConnectionPointer& old : old_) {
      const transport::Connection* name = old.get();
      old.reset();
      landing_.erase(name);
      leaving_.erase(name);
    }
    old_.clear();
  });
}

void StageProcess::drop_life() {
  ++lives_;
  if (desk_) desk_->stop();
  life_.reset();
  continues_.reset();
}

/// Those whom we reached, and those who came for a generation before this one. Who has not said yet what for may stay.
void StageProcess::drop_neighbours_before(std::uint32_t generation) {
  for (auto it = neighbours_.begin(); it != neighbours_.end();) {
    const Neighbour& neighbour = it->second;
    const bool stays = neighbour.came && (!neighbour.said || neighbour.said->generation >= generation);
    if (!stays) bury(std::move(it->second.connection));
    it = stays ? std::next(it) : neighbours_.erase(it);
  }
}

/// The neighbour may have died: the conductor hears of that too, and first of all from the neighbour's own silence.
void StageProcess::part(const std::string& why) {
  if (chief_ && life_) chief_->send(wire::Parted{life_->laid.generation, why});
}

void StageProcess::lay(const wire::Lay& laid) {
  drop_life();
  drop_neighbours_before(laid.generation);
  life_ = Life{};
  Life& life = *life_;
  life.laid = laid;
  for (const wire::Section& section : laid.sections) life.cut.push_back({section.first, section.last, section.node});
  life.schedule = {.name = {},
                   .micro_batches = laid.micro_batches,
                   .most_held = laid.most_held,
                   .ahead = laid.ahead,
                   .forwards_first = laid.forwards_first,
                   .weights_apart = laid.weights_apart,
                   .predicts = laid.predicts,
                   .clips = laid.clips,
                   .replan_every = 0,
                   .softens = laid.softens};
  life.place = kit_->place(life.cut, laid.stage);
  life.part = std::make_shared<store::StagePart>();
  life.part->values.resize(life.place.values);
  life.missing = life.place.values;
  life.part->updates = laid.from;
  if (laid.moments) {
    life.part->first.resize(life.place.parameters);
    life.missing += life.place.parameters;
    if (kit_->replica.optimizer.kind == store::OptimizerKind::adamw) {
      life.part->second.resize(life.place.parameters);
      life.missing += life.place.parameters;
    }
  }
  life.allowed = laid.allowed;
  life.handed_in = laid.from;
  life.next_input = life.next_gradient = laid.from * laid.micro_batches;
  training_.emplace(laid.training);
  log_(fmt::format("stage {} of {}: blocks {} to {}, from mini-batch {}", laid.stage + 1, life.cut.size(), life.cut[laid.stage].first,
                   life.cut[laid.stage].last - 1, laid.from));
  chief_->send(wire::Laid{laid.generation});
  if (!is_last()) couple();
  // The stage before may have come already.
  for (auto& [connection, neighbour] : neighbours_) {
    if (!neighbour.came || !neighbour.said || neighbour.sent_away || neighbour.said->generation != laid.generation) continue;
    if (is_before(*neighbour.said))
      take_before(*neighbour.connection);
    else
      expel(*neighbour.connection, "it is not the stage before this one");
  }
  begin_when_all_is_here();
}

void StageProcess::begin_when_all_is_here() {
  Life& life = *life_;
  if (life.started || life.missing > 0 || (life.laid.stage > 0 && life.before == nullptr) || (!is_last() && life.after == nullptr)) return;
  life.started = true;
  StageSetting setting;
  store::StageReplicaOptions replica = kit_->replica;
  replica.parameters = life.place.parameters;
  replica.micro_batches = life.schedule.micro_batches;
  replica.reads_samples = life.laid.stage == 0 || is_last();
  replica.predicts = life.schedule.predicts;
  replica.clips = life.schedule.clips;
  setting.make = [make = kit_->make, cut = life.cut, stage = life.laid.stage, replica, part = std::move(life.part)] {
    auto source = make(cut, stage);
    if (!source) throw std::runtime_error(source.error().message);
    return std::make_unique<store::StageReplica>(replica, std::move(*source), std::move(*part));
  };
  if (kit_->emulated) setting.parts_s = life.laid.parts_s;
  setting.kept_bytes = life.laid.kept_bytes;
  setting.clock = *training_;
  desk_->lay_out(std::move(setting));
  const std::uint64_t all = std::min(replica.total_samples, kit_->mini_batches * replica.samples);
  const Batching batching{all, replica.samples, replica.micro_batches};
  life.machine.emplace(protocol::StageOptions{life.schedule, life.laid.stage, static_cast<std::uint32_t>(life.cut.size()), life.laid.from,
                                              life.laid.from, batching.micro_batches()});
  tell(protocol::StageStarted{});
  tell(protocol::MoreMiniBatches{life.allowed});
  tell_of_what_is_here();
}

double StageProcess::rate(std::uint64_t mini) const {
  return kit_->rates->rate(mini * kit_->replica.samples) * plan::softening(life_->schedule, life_->laid.stage, mini, kit_->mini_batches);
}

void StageProcess::tell(const protocol::StageEvent& event) {
  if (!life_ || !life_->machine) return;
  const std::uint32_t generation = life_->laid.generation;
  protocol::StageActions actions;
  life_->machine->step(event, actions);
  for (const auto& action : actions) {
    if (ended_ || !life_ || life_->laid.generation != generation) return;
    carry_out(action);
  }
}

void StageProcess::carry_out(const protocol::StageAction& action) {
  std::visit(
      match{[&](const protocol::RunPart& a) { run(a); }, [&](const protocol::ShipOutput& a) { ship(a.micro, false); },
            [&](const protocol::ShipGradient& a) { ship(a.micro, true); }, [&](const protocol::CommitMiniBatch& a) { commit(a.mini); }},
      action);
}

void StageProcess::run(const protocol::RunPart& part) {
  Life& life = *life_;
  StageWork work;
  work.part = part;
  work.began = continues_ ? *continues_ : training_->now();
  if (part.part == Part::forward) {
    life.versions[part.micro] = life.machine->committed();
    work.rate = rate(part.micro / life.schedule.micro_batches);
  }
  auto& from = part.part == Part::forward ? life.inputs : life.gradients;
  if (part.part != Part::weight)
    if (auto found = from.extract(part.micro); !found.empty()) work.in = std::move(*found.mapped().activation);
  desk_->run(std::move(work));
}

void StageProcess::done(StageWork& work) {
  if (!life_ || !life_->machine) return;
  Life& life = *life_;
  const std::uint64_t micro = work.part.micro;
  life.did.push_back({static_cast<std::uint8_t>(work.part.part), micro, life.versions[micro], work.part.late, work.began.time_since_epoch(),
                      work.ended.time_since_epoch()});
  life.finite = life.finite && work.finite;
  life.stash_bytes = std::max(life.stash_bytes, work.stash_bytes);
  if (work.part.part == Part::forward) life.outgoing[micro] = std::move(work.out);
  if (work.part.part == Part::input) life.returning[micro] = std::move(work.out);
  if (work.part.part == Part::weight) life.versions.erase(micro);
  if (kit_->emulated) continues_ = work.ended;
  tell(protocol::PartDone{work.part.part, micro});
  continues_.reset();
}

void StageProcess::commit(std::uint64_t mini) {
  Life& life = *life_;
  desk_->commit(mini, rate(mini));
  chief_->send(wire::Committed{life.laid.generation, life.laid.stage, mini + 1, life.finite, life.stash_bytes, std::move(life.did)});
  life.did.clear();
  const bool due = (mini + 1) % kit_->keep_every == 0 || mini + 1 == kit_->mini_batches;
  if (due) {
    life.handed_in = mini + 1;
    desk_->hand_in(mini + 1);
  }
  hand_in_if_due();
}

void StageProcess::hand_in_if_due() {
  Life& life = *life_;
  if (!life.hand_in || !life.machine || life.machine->committed() != life.allowed || life.handed_in >= life.allowed) return;
  life.handed_in = life.allowed;
  desk_->hand_in(life.allowed);
}

void StageProcess::handed_in(std::uint64_t mini_batches, std::shared_ptr<const store::StagePart> part) {
  if (!life_ || !chief_) return;
  const std::size_t piece = std::max<std::size_t>(1, options_.transport.slice_bytes / sizeof(float));
  const auto send = [&](const std::vector<float>& numbers, wire::Holding holding) {
    for (std::size_t at = 0; at < numbers.size(); at += piece) {
      const auto run = std::span(numbers).subspan(at, std::min(piece, numbers.size() - at));
      leaving_[chief_.get()][next_ticket_] = part;
      chief_->send(transport::Parcel{wire::StageSlice{life_->laid.generation, life_->laid.stage, mini_batches, holding, at},
                                     std::as_bytes(run), 0, next_ticket_++});
    }
  };
  send(part->values, wire::Holding::values);
  send(part->first, wire::Holding::first);
  send(part->second, wire::Holding::second);
}

void StageProcess::failed(const std::string& what) {
  finish(world_failed(fmt::format("{}: computing a part failed: {}", options_.node, what)));
}

// What else comes in ---------------------------------------------------------------------------------------------------------------------

void StageProcess::heard(transport::Connection& from, wire::Message message) {
  if (ended_) return;
  if (const auto why = objection(from, wire::Lane::control, message)) return expel(from, *why);
  std::visit(match{[&](const wire::Couple& m) { coupled(from, m); }, [&](const wire::Briefing& m) { briefed(m); },
                   [&](const wire::Lay& m) { lay(m); }, [&](const wire::Stop&) { finish(Done{}); },
                   [&](const wire::Aboard&) { reconnect_.settled(); },
                   [&](const wire::Allow& m) {
                     if (m.generation != life_->laid.generation) return;  // of an earlier one
                     life_->allowed = m.allowed;
                     life_->hand_in = m.hand_in;
                     tell(protocol::MoreMiniBatches{m.allowed});
                     if (life_ && life_->started) hand_in_if_due();
                   },
                   [](const auto&) {}},  // refused above
             message);
}

void StageProcess::sent(transport::Connection& to, std::uint64_t ticket) {
  if (const auto found = leaving_.find(&to); found != leaving_.end()) found->second.erase(ticket);
}

void StageProcess::closed(transport::Connection& connection, const Error& why) {
  if (ended_) return;
  if (&connection == chief_.get()) return lose(fmt::format("lost the conductor: {}", why.message));
  const auto found = neighbours_.find(&connection);
  if (found == neighbours_.end()) return;
  bury(std::move(found->second.connection));
  neighbours_.erase(found);
  if (!life_ || (life_->before != &connection && life_->after != &connection)) return;
  if (life_->before == &connection) life_->before = nullptr;
  if (life_->after == &connection) life_->after = nullptr;
  part(why.message);
}

void StageProcess::accepted(std::unique_ptr<transport::Connection> connection) {
  auto held = std::make_unique<transport::Shaped>(std::move(connection), pump_.get_executor(), transport::Shape{}, options_.transport);
  transport::Shaped& shaped = *held;
  neighbours_[&shaped] = {std::move(held), true, std::nullopt, clock_.now()};
  shaped.start(*this);
}

void StageProcess::refused(const std::string& address, const std::string& reason) {
  refusals_.say(fmt::format("refused {}: {}", address, reason));
}

}  // namespace motley::run
