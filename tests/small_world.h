// A small cluster for tests/small_worlds_test.cpp: the real chief, shard and worker machines, joined by lanes in which messages wait until
// the driver delivers one. No clock and no network: the driver chooses the next event.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/match.h"
#include "checkers.h"
#include "policy/strategies.h"
#include "protocol/chief.h"
#include "protocol/shard.h"
#include "protocol/trace_events.h"
#include "protocol/worker.h"
#include "wire/encode.h"
#include "wire/frame.h"

namespace motley::small_worlds {

using checkers::Checker;
using protocol::Peer;
using protocol::Role;

struct SmallJob {
  std::string strategy = "bsp";
  std::uint32_t workers = 2;
  std::uint32_t servers = 1;
  std::uint32_t slices = 2;
  std::uint32_t quorum = 2;
  std::uint32_t batch = 2;
  std::uint64_t samples = 4;
  std::optional<std::uint32_t> overlap{};  // of strategies that may overlap
  std::uint32_t ticks = 0;                 // number of times that the chief's clock may advance by a few steps, at any moment
};

enum class Misfortune : std::uint8_t { none, connection_breaks, breaks_in_mid_push, taken_for_dead, leaves, not_finite };

// Fingerprints ------------------------------------------------------------------------------------------------------------------------

struct Hasher {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  void put(std::uint64_t number, std::size_t = 8) {
    hash = (hash ^ number) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 29;
  }
};

template <class... Numbers>
std::uint64_t mix(Numbers... numbers) {
  Hasher hasher;
  (hasher.put(static_cast<std::uint64_t>(numbers)), ...);
  return hasher.hash;
}

inline std::uint64_t hash_of(const wire::Message& message) {
  Hasher hasher;
  hasher.put(message.index());
  std::visit([&](const auto& m) { wire::write(hasher, m); }, message);
  return hasher.hash;
}

// The world ---------------------------------------------------------------------------------------------------------------------------

struct Broken {};  // the last item of a connection
struct Item {
  Peer from;
  std::variant<wire::Message, Broken> what;
  std::uint64_t hash{};
};

struct Lane {
  Peer from, to;            // workers by process, not by id
  std::vector<Item> items;  // oldest first; few
};

/// A possible next event.
struct Choice {
  enum class What : std::uint8_t { deliver, finish_computing, failure, time_passes, clock_ticks } what{};
  std::uint32_t index{};  // of the lane or the process
  Misfortune failure{};
  auto operator<=>(const Choice&) const = default;
};

class SmallWorld {
 public:
  explicit SmallWorld(const SmallJob& job)
      : job_(job), chief_(chief_options(job), make_strategy(job), policy::LrSchedule({}, job.batch, job.samples, job.samples)) {
    std::vector<ServerId> server_of_slice;
    for (std::uint32_t i = 0; i < job.slices; ++i) server_of_slice.push_back(ServerId{i % job.servers});
    for (std::uint32_t s = 0; s < job.servers; ++s) {
      std::vector<SliceId> slices;
      for (std::uint32_t i = s; i < job.slices; i += job.servers) slices.push_back(SliceId{i});
      shards_.emplace_back(ServerId{s}, slices);
      servers_.emplace_back();
      lanes_.push_back({protocol::the_chief, {Role::server, s}, {}});
      lanes_.push_back({{Role::server, s}, protocol::the_chief, {}});
    }
    for (std::uint32_t p = 0; p < job.workers; ++p) {
      processes_.push_back({protocol::Worker({.node = "n", .servers_of_slices = server_of_slice, .node_index = p}), {}, {}, p});
      lanes_.push_back({protocol::the_chief, {Role::worker, p}, {}});
      lanes_.push_back({{Role::worker, p}, protocol::the_chief, {}});
      for (std::uint32_t s = 0; s < job.servers; ++s) {
        lanes_.push_back({{Role::worker, p}, {Role::server, s}, {}});
        lanes_.push_back({{Role::server, s}, {Role::worker, p}, {}});
      }
    }
    watch(std::make_unique<checkers::EverySampleOnce>(job.samples, job.samples));
    watch(std::make_unique<checkers::FormerMembersFenced>());
    watch(std::make_unique<checkers::VersionsOnlyGrow>());
    if (job.strategy == "bsp" || job.strategy == "lb-bsp" || job.strategy == "local-sgd") {
      watch(std::make_unique<checkers::StalenessBound>(checkers::StalenessBound::Allowed{.staleness = 0, .ahead = {}}));
      watch(std::make_unique<checkers::RoundsDoNotOverlap>());
    }
    if (job.strategy == "hps" || job.strategy == "multistep")
      watch(std::make_unique<checkers::StalenessBound>(
          checkers::StalenessBound::Allowed{.staleness = job.overlap.value_or(job.strategy == "hps" ? 0 : 1), .ahead = {}}));
    for (std::uint32_t p = 0; p < job.workers; ++p) tell_worker(p, protocol::Started{}, 0);
  }

  [[nodiscard]] std::vector<Choice> choices() const {
    std::vector<Choice> list;
    for (std::uint32_t i = 0; i < lanes_.size(); ++i)
      if (!lanes_[i].items.empty()) list.push_back({Choice::What::deliver, i, {}});
    for (std::uint32_t p = 0; p < processes_.size(); ++p)
      if (processes_[p].computing) list.push_back({Choice::What::finish_computing, p, {}});
    if (chief_.finished()) return list;
    if (ticks_ < job_.ticks && !members_.empty()) list.push_back({Choice::What::clock_ticks, 0, {}});
    if (list.empty() && waits_ < 2) list.push_back({Choice::What::time_passes, 0, {}});
    if (suffered_ == Misfortune::none)
      for (std::uint32_t p = 0; p < processes_.size(); ++p) add_failures(p, list);
    return list;
  }

  /// Whether two possible events lead to the same state in either order, and neither prevents the other: they happen at different machines.
  /// Failures also depend on the chief (none happens after the end) and on the lanes that they empty.
  [[nodiscard]] bool independent(const Choice& a, const Choice& b) const {
    using What = Choice::What;
    if (a.what == What::time_passes || b.what == What::time_passes) return false;
    if (a.what == What::failure && b.what == What::failure) return false;
    if (b.what == What::failure) return independent(b, a);
    if (a.what == What::failure) {
      if (machine(b) == protocol::the_chief) return false;
      if (a.failure == Misfortune::breaks_in_mid_push && machine(b).role == Role::server) return false;
    }
    return machine(a) != machine(b);
  }

  /// As text, before the event is taken.
  [[nodiscard]] std::string describe(const Choice& choice) const {
    static constexpr std::array<std::string_view, 6> failures{
        "nothing", "connection breaks", "connection breaks, its pushes are lost", "is taken for dead", "leaves", "computes NaN"};
    switch (choice.what) {
      case Choice::What::deliver: {
        const Lane& lane = lanes_[choice.index];
        const auto* message = std::get_if<wire::Message>(&lane.items.front().what);
        return fmt::format("{} -> {}: {}", name(lane.from), name(lane.to),
                           message != nullptr ? wire::name_of(*message) : "connection broken");
      }
      case Choice::What::finish_computing: return fmt::format("process {} has computed", choice.index);
      case Choice::What::failure: return fmt::format("process {}: {}", choice.index, failures.at(static_cast<std::size_t>(choice.failure)));
      case Choice::What::time_passes: return "time passes";
      case Choice::What::clock_ticks: return "the clock ticks";
    }
    return {};
  }

  void take(const Choice& choice) {
    switch (choice.what) {
      case Choice::What::deliver: return deliver(lanes_[choice.index]);
      case Choice::What::finish_computing: return finish_computing(choice.index, true);
      case Choice::What::failure: suffered_ = choice.failure; return befall(choice.index, choice.failure);
      case Choice::What::time_passes: ++waits_; return let_time_pass(std::nullopt);
      case Choice::What::clock_ticks: return tick();
    }
  }

  [[nodiscard]] std::uint64_t fingerprint() const {
    Hasher hasher;
    hasher.put(chief_history_);
    for (const auto& [key, part] : parts_) hasher.put(mix(key.first.value, key.second.value, part.sum));
    for (const Memory& memory : servers_) {
      hasher.put(memory.version);
      for (const WorkerId worker : memory.forgotten) hasher.put(mix(1, worker.value));
      for (const auto& [worker, step] : memory.discarded) hasher.put(mix(3, worker.value, step.value));
      for (const auto& [key, slices] : memory.gathered) hasher.put(mix(2, key.first.value, key.second.value, slices));
    }
    for (const Process& process : processes_)
      hasher.put(process.machine ? mix(process.history, process.computing ? process.computing->step.value + 1 : 0) : 0);
    for (const Lane& lane : lanes_) {
      hasher.put(lane.items.size());
      for (const Item& item : lane.items) hasher.put(item.hash);
    }
    hasher.put(mix(suffered_, waits_, ticks_));
    return hasher.hash;
  }

  [[nodiscard]] bool all_is_well() const {
    return std::all_of(watchers_.begin(), watchers_.end(), [](const auto& checker) { return checker->complaints().empty(); });
  }
  /// The violations so far; at the end also unfinished work.
  [[nodiscard]] std::string troubles(bool at_the_end) const {
    std::ostringstream out;
    for (const auto& checker : watchers_)
      for (const checkers::Complaint& complaint : checker->complaints()) out << checker->name() << ": " << complaint << "\n";
    if (!at_the_end) return out.str();
    if (!chief_.finished()) out << "no event is possible, and training has not ended\n";
    if (ended_ && *ended_ != protocol::EndReason::every_sample_counted)
      out << "training ended for reason " << static_cast<int>(*ended_) << "\n";
    for (const protocol::Shard& shard : shards_) {
      if (shard.version() != chief_.version())
        out << "a server is at version " << shard.version().value << ", the chief at " << chief_.version().value << "\n";
      if (shard.contributions_held() > 0) out << "a server still holds " << shard.contributions_held() << " contributions\n";
    }
    return out.str();
  }

 private:
  struct Process {
    std::optional<protocol::Worker> machine;  // absent: the process has ended
    std::optional<wire::Order> computing;
    std::optional<WorkerId> member;  // its member id at the chief
    std::uint64_t history;
  };
  /// The state of a server.
  struct Memory {
    std::uint64_t version = 0;
    std::set<WorkerId> forgotten;
    std::set<std::pair<WorkerId, Step>> discarded;
    std::map<std::pair<WorkerId, Step>, std::uint64_t> gathered;
  };
  /// Of a contribution that is not yet complete at the chief.
  struct Parts {
    std::uint32_t count = 0;
    std::uint64_t sum = 0;
  };

  static protocol::ChiefOptions chief_options(const SmallJob& job) {
    protocol::ChiefOptions options;
    options.epoch_samples = options.total_samples = job.samples;
    options.global_batch = job.batch;
    options.evaluate_every = job.samples;
    options.servers = job.servers;
    options.quorum = job.quorum;
    options.step_limit = from_seconds(1e6);  // servers of small worlds do not answer probes
    return options;
  }
  static policy::Strategy make_strategy(const SmallJob& job) {
    policy::StrategySpec spec;
    spec.kind = job.strategy;
    const auto perhaps = [&](auto knob, std::uint32_t value) {  // small values, so that few steps reach every state
      policy::StrategySpec with = spec;
      with.knobs.*knob = value;
      if (policy::make_strategy(with, {job.batch, 0.9}).ok()) spec = with;
    };
    perhaps(&policy::Knobs::steps, 1);
    perhaps(&policy::Knobs::bound, 0);
    perhaps(&policy::Knobs::bound_max, 1);
    if (job.overlap) perhaps(&policy::Knobs::overlap, *job.overlap);
    auto made = policy::make_strategy(spec, {job.batch, 0.9});
    check(made.ok(), "small worlds use existing strategies");
    return std::move(*made);
  }
  void watch(std::unique_ptr<Checker> checker) { watchers_.push_back(std::move(checker)); }

  /// The machine at which the event happens.
  [[nodiscard]] Peer machine(const Choice& choice) const {
    if (choice.what == Choice::What::deliver) return lanes_[choice.index].to;
    if (choice.failure == Misfortune::taken_for_dead || choice.what == Choice::What::clock_ticks) return protocol::the_chief;
    return {Role::worker, choice.index};
  }

  void add_failures(std::uint32_t p, std::vector<Choice>& list) const {
    const Process& process = processes_[p];
    if (!process.machine) return;
    const auto add = [&](Misfortune failure) { list.push_back({Choice::What::failure, p, failure}); };
    add(Misfortune::connection_breaks);
    if (pushes_in_flight(p)) add(Misfortune::breaks_in_mid_push);
    if (process.member) add(Misfortune::taken_for_dead);
    add(Misfortune::leaves);
    if (process.computing) add(Misfortune::not_finite);
  }

  void befall(std::uint32_t p, Misfortune failure) {
    switch (failure) {
      case Misfortune::none: return;
      case Misfortune::breaks_in_mid_push:
        for (Lane& lane : lanes_)
          if (lane.from == Peer{Role::worker, p} && lane.to.role == Role::server) lane.items.clear();
        return die(p);
      case Misfortune::connection_breaks: return die(p);
      case Misfortune::taken_for_dead: return let_time_pass(p);
      case Misfortune::leaves: return tell_worker(p, protocol::AskedToLeave{}, 1);
      case Misfortune::not_finite: return finish_computing(p, false);
    }
  }

  [[nodiscard]] bool pushes_in_flight(std::uint32_t p) const {
    return std::any_of(lanes_.begin(), lanes_.end(), [&](const Lane& lane) {
      return lane.from == Peer{Role::worker, p} && lane.to.role == Role::server && !lane.items.empty();
    });
  }

  void die(std::uint32_t p) {
    processes_[p].machine.reset();
    processes_[p].computing.reset();
    for (Lane& lane : lanes_)
      if (lane.to == Peer{Role::worker, p}) lane.items.clear();
    lane_between({Role::worker, p}, protocol::the_chief).items.push_back({{Role::worker, p}, Broken{}, 1});
  }

  /// Longer than the silence deadline; all processes but `silent` send heartbeats.
  void let_time_pass(std::optional<std::uint32_t> silent) {
    now_ += 2 * chief_options(job_).silence_deadline;
    for (std::uint32_t p = 0; p < processes_.size(); ++p)
      if (processes_[p].member && p != silent)
        tell_chief(protocol::Received{protocol::peer(*processes_[p].member), wire::Heartbeat{*processes_[p].member}});
    tell_chief(protocol::Tick{});
    chief_history_ = mix(chief_history_, 2, silent.value_or(99));
  }

  /// Longer than a normal step, shorter than any deadline.
  void tick() {
    ++ticks_;
    now_ += from_seconds(2);
    tell_chief(protocol::Tick{});
    chief_history_ = mix(chief_history_, 4);
  }

  // Delivery

  static std::string name(Peer peer) {
    if (peer.role == Role::chief) return "chief";
    return fmt::format("{} {}", peer.role == Role::server ? "server" : "process", peer.id);
  }
  Lane& lane_between(Peer from, Peer to) {
    const auto lane = std::find_if(lanes_.begin(), lanes_.end(), [&](const Lane& l) { return l.from == from && l.to == to; });
    check(lane != lanes_.end(), "communicating machines have a lane");
    return *lane;
  }
  void send(Peer from_lane, Peer to_lane, Peer from, const wire::Message& message) {
    if (to_lane.role == Role::worker && !processes_[to_lane.id].machine) return;  // the worker has ended
    lane_between(from_lane, to_lane).items.push_back({from, message, mix(hash_of(message), from.role, from.id)});
  }

  void deliver(Lane& lane) {
    const Item item = std::move(lane.items.front());
    lane.items.erase(lane.items.begin());
    if (lane.to.role == Role::worker) return tell_worker(lane.to.id, protocol::Arrived{std::get<wire::Message>(item.what)}, item.hash);
    if (lane.to.role == Role::server) return tell_shard(lane.to.id, std::get<wire::Message>(item.what));
    if (std::holds_alternative<Broken>(item.what)) {
      chief_history_ = mix(chief_history_, 3, lane.from.id);
      if (processes_[lane.from.id].member)
        tell_chief(protocol::Lost{*processes_[lane.from.id].member});
      else
        tell_chief(protocol::LostPending{lane.from.id});
      return;
    }
    const auto& message = std::get<wire::Message>(item.what);
    remember(message, item.hash);
    tell_chief(protocol::Received{item.from, message});
  }

  /// The part of a message that the chief keeps, see the head of this file.
  void remember(const wire::Message& message, std::uint64_t hash) {
    const auto part = [&](WorkerId worker, Step step) {
      if (!members_.contains(worker)) return;  // ignored, or answered by Fenced: no state is kept
      Parts& parts = parts_[{worker, step}];
      parts.sum += hash;
      if (++parts.count <= job_.servers) return;
      chief_history_ = mix(chief_history_, parts.sum);
      parts_.erase({worker, step});
    };
    if (const auto* reported = std::get_if<wire::Contributed>(&message)) return part(reported->worker, reported->step);
    if (const auto* got = std::get_if<wire::Gathered>(&message)) return part(got->worker, got->step);
    chief_history_ = mix(chief_history_, hash);
  }

  void finish_computing(std::uint32_t p, bool finite) {
    const wire::Order order = *processes_[p].computing;
    processes_[p].computing.reset();
    protocol::Computed computed{.step = order.step,
                                .report = {.loss_sum = 1, .squared_norm = 1, .finite = finite, .compute = from_seconds(1)}};
    if (order.limit > Duration{0}) computed.report.samples = 1;  // its time is up early: the rest goes back
    tell_worker(p, computed, finite ? 3 : 4);
  }

  // Machines and their answers

  void tell_chief(const protocol::ChiefEvent& event) {
    protocol::ChiefActions actions;
    chief_.step(now_, event, actions);
    for (const auto& action : actions) carry_out(action);
  }

  void tell_shard(std::uint32_t s, const wire::Message& message) {
    Memory& memory = servers_[s];
    if (const auto* push = std::get_if<wire::Push>(&message); push != nullptr && !memory.forgotten.contains(push->worker))
      ++memory.gathered[{push->worker, push->step}];
    if (const auto* gone = std::get_if<wire::Forget>(&message)) memory.forgotten.insert(gone->worker);
    if (const auto* drop = std::get_if<wire::Discard>(&message)) {
      memory.gathered.erase({drop->worker, drop->step});
      memory.discarded.emplace(drop->worker, drop->step);
    }
    if (const auto* update = std::get_if<wire::Apply>(&message)) {
      ++memory.version;
      for (const wire::Part& part : update->parts) memory.gathered.erase({part.worker, part.step});
    }
    protocol::ShardActions actions;
    shards_[s].step(message, actions);
    for (const auto& action : actions)
      if (const auto* out = std::get_if<protocol::Send>(&action)) {
        const Peer to = out->to.role == Role::worker ? Peer{Role::worker, process_of_.at(WorkerId{out->to.id})} : out->to;
        send({Role::server, s}, to, {Role::server, s}, out->message);
      } else if (const auto* compare = std::get_if<protocol::Compare>(&action)) {
        const double alignment = compare->step.value % 2 == 0 ? 1 : -1;
        send({Role::server, s}, protocol::the_chief, {Role::server, s},
             wire::AlignmentResult{ServerId{s}, compare->worker, compare->step, alignment});
      }
  }

  void tell_worker(std::uint32_t p, const protocol::WorkerEvent& event, std::uint64_t hash) {
    Process& process = processes_[p];
    process.history = mix(process.history, hash);
    protocol::WorkerActions actions;
    process.machine->step(now_, event, actions);
    bool awaited = false;
    for (const auto& action : actions)
      std::visit(match{[&](const protocol::Send& a) {
                         if (std::holds_alternative<wire::Began>(a.message)) return;  // no state depends on it
                         const auto id = process.machine->id();
                         send({Role::worker, p}, a.to, id ? protocol::peer(*id) : protocol::pending_worker(p), a.message);
                       },
                       [&](const protocol::Compute& a) {
                         process.computing = a.order;
                         process.history = mix(hash_of(a.order), a.base.value);
                       },
                       [&](const protocol::Abandon&) { process.computing.reset(); }, [&](const protocol::Quit&) { die(p); },
                       [&](const protocol::AwaitDevice&) { awaited = true; }},
                 action);
    if (awaited) tell_worker(p, protocol::DeviceFree{}, 5);
  }

  void carry_out(const protocol::ChiefAction& action) {
    std::visit(match{[&](const protocol::Send& a) { send_from_chief(a); },
                     [&](const protocol::Joined& a) { tell(trace::Joined{.worker = a.worker}); },
                     [&](const protocol::Left& a) {
                       tell(trace::Left{.worker = a.worker, .why = static_cast<std::uint8_t>(a.why)});
                       members_.erase(a.worker);
                       processes_[process_of_.at(a.worker)].member.reset();
                       std::erase_if(parts_, [&](const auto& entry) { return entry.first.first == a.worker; });
                     },
                     [&](const protocol::Completed& a) {
                       tell(trace::Contributed{.worker = a.worker, .step = a.step, .base = a.base, .samples = a.samples});
                     },
                     [&](const protocol::Returned& a) {
                       for (const trace::EventData& event : protocol::to_trace_events(a)) tell(event);
                     },
                     [&](const protocol::Counted& a) {
                       tell(trace::Counted{.worker = a.worker,
                                           .step = a.step,
                                           .version = a.version,
                                           .samples = a.samples,
                                           .staleness = a.staleness,
                                           .weight = a.weight});
                     },
                     [&](const protocol::Released& a) { tell(trace::Released{.worker = a.worker, .step = a.step, .version = a.version}); },
                     [&](const protocol::Held& a) { tell(trace::Held{.worker = a.worker}); },
                     [&](const protocol::Dropped& a) { tell(trace::Dropped{.worker = a.worker, .step = a.step}); },
                     [&](const protocol::Idled& a) { tell(trace::Idled{.worker = a.worker}); },
                     [&](const protocol::Cancelled& a) { tell(trace::Cancelled{.worker = a.worker, .step = a.step}); },
                     [&](const protocol::Discarded& a) { tell(trace::Discarded{.worker = a.worker, .step = a.step}); },
                     [&](const protocol::Noted& a) { tell(*protocol::to_trace_event(a)); }, [&](const protocol::WakeAt&) {},
                     [&](const protocol::Evaluate&) {}, [&](const protocol::Checkpoint&) {}, [&](const protocol::ServerStuck&) {},
                     [&](const protocol::Finished& a) {
                       ended_ = a.why;
                       tell(trace::Finished{.why = static_cast<std::uint8_t>(a.why), .samples = chief_.ledger().counted()});
                     }},
               action);
  }

  void send_from_chief(const protocol::Send& out) {
    if (out.to.role == Role::server) {
      if (const auto* update = std::get_if<wire::Apply>(&out.message); update != nullptr && out.to.id == 0)
        tell(trace::Applied{.version = update->version, .parts = update->parts.size()});
      return send(protocol::the_chief, out.to, protocol::the_chief, out.message);
    }
    const std::uint32_t p = out.to.role == Role::pending ? out.to.id : process_of_.at(WorkerId{out.to.id});
    if (const auto* welcome = std::get_if<wire::Welcome>(&out.message)) {
      process_of_[welcome->worker] = p;
      processes_[p].member = welcome->worker;
      members_.insert(welcome->worker);
    }
    if (const auto* order = std::get_if<wire::Order>(&out.message)) {
      tell(trace::Ordered{.worker = order->worker, .step = order->step, .version = order->version, .samples = order->lease.size()});
      for (const Range& range : order->lease.ranges)
        tell(trace::Leased{.worker = order->worker, .step = order->step, .epoch = range.epoch, .first = range.first, .last = range.last});
    }
    send(protocol::the_chief, {Role::worker, p}, protocol::the_chief, out.message);
  }

  void tell(const trace::EventData& data) {
    for (const auto& checker : watchers_) checker->on_event({now_, data});
  }

  SmallJob job_;
  Instant now_{};
  protocol::Chief chief_;
  std::vector<protocol::Shard> shards_;
  std::vector<Process> processes_;
  std::vector<Lane> lanes_;
  std::map<WorkerId, std::uint32_t> process_of_;
  std::set<WorkerId> members_;
  std::vector<std::unique_ptr<Checker>> watchers_;
  std::optional<protocol::EndReason> ended_;
  Misfortune suffered_ = Misfortune::none;
  std::uint32_t waits_ = 0;
  std::uint32_t ticks_ = 0;
  // The states of the machines, for the fingerprint
  std::uint64_t chief_history_ = 0;
  std::map<std::pair<WorkerId, Step>, Parts> parts_;
  std::vector<Memory> servers_;
};

}  // namespace motley::small_worlds
