// Drives a chief in tests: workers join, compute and die, servers gather, time passes, each when the test says so. Records the orders, so
// that a test can say "finish this worker's step".
#pragma once
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "policy/strategies.h"
#include "protocol/chief.h"

namespace motley::protocol {

/// Two epochs of 100 samples; two servers; evaluated at the end only.
inline ChiefOptions small_job() {
  ChiefOptions options;
  options.epoch_samples = 100;
  options.total_samples = 200;
  options.evaluate_every = 1000;
  options.servers = 2;
  return options;
}

class ChiefDriver {
 public:
  ChiefDriver(const ChiefOptions& options, const policy::StrategySpec& strategy, std::uint32_t global_batch,
              const policy::LrScheduleSpec& schedule = {.lr = 0.1})
      : servers_(options.servers),
        chief(options, policy::make_strategy(strategy, {global_batch, 0.9}).value(),
              policy::LrSchedule(schedule, global_batch, options.epoch_samples, options.total_samples)) {}

 private:
  std::uint32_t servers_;
  std::set<std::pair<WorkerId, Step>> last_reported_;  // computed steps

 public:
  Chief chief;
  Instant now{};
  std::map<WorkerId, wire::Order> orders;             // not yet finished: the oldest of each worker
  std::map<WorkerId, std::deque<wire::Order>> later;  // later orders
  std::map<std::uint32_t, WorkerId> members;          // by connection: the last worker admitted there
  ChiefActions last;                                  // the chief's actions after the last event

  void step(const ChiefEvent& event) {
    last.clear();
    chief.step(now, event, last);
    for (const ChiefAction& action : last) {
      if (const auto* send = std::get_if<Send>(&action)) {
        if (const auto* order = std::get_if<wire::Order>(&send->message)) ordered(*order);
        if (const auto* welcome = std::get_if<wire::Welcome>(&send->message)) members[send->to.id] = welcome->worker;
      }
      if (const auto* cancelled = std::get_if<Cancelled>(&action)) {
        orders.erase(cancelled->worker);
        later.erase(cancelled->worker);
      }
      if (const auto* left = std::get_if<Left>(&action)) {
        orders.erase(left->worker);
        later.erase(left->worker);
      }
    }
  }

  /// Appended to the orders that this worker still has to compute.
  void ordered(const wire::Order& order) {
    const auto before = orders.find(order.worker);
    if (before == orders.end() || (later[order.worker].empty() && last_reported_.contains({order.worker, before->second.step})))
      orders[order.worker] = order;
    else
      later[order.worker].push_back(order);
  }

  // Events ------------------------------------------------------------------------------------------------------------------------------

  /// None when it is refused, or has to wait for the start.
  std::optional<WorkerId> hello(std::uint32_t connection, const wire::Hello& hello) {
    step(Received{pending_worker(connection), hello});
    if (sent<wire::Welcome>().empty()) return std::nullopt;
    return members.at(connection);
  }
  std::optional<WorkerId> hello(std::uint32_t connection, const std::string& node = "node", std::uint32_t attempt = 1) {
    return hello(connection, wire::Hello{.node = node, .attempt = attempt});
  }
  void say(WorkerId worker, const wire::Message& message) { step(Received{peer(worker), message}); }
  /// The worker has computed its order, or the first `done` samples of it.
  void report_contributed(WorkerId worker, bool finite = true, Duration took = from_seconds(0.1), std::uint32_t done = 0) {
    const wire::Order order = orders.at(worker);
    last_reported_.emplace(worker, order.step);
    const auto samples = done > 0 ? done : static_cast<std::uint32_t>(order.lease.size());
    const Duration pull = order.parameters == order.step ? from_seconds(0.005) : Duration{0};
    say(worker, wire::Contributed{.worker = worker,
                                  .step = order.step,
                                  .base = order.version,
                                  .report = {.samples = samples,
                                             .local_steps = order.local_steps,
                                             .loss_sum = 1,
                                             .squared_norm = 1,
                                             .finite = finite,
                                             .compute = took,
                                             .pull = pull}});
  }
  void report_gathered(std::uint32_t server, WorkerId worker) {
    step(Received{peer(ServerId{server}), wire::Gathered{ServerId{server}, worker, orders.at(worker).step}});
  }
  /// Contributed and gathered by all servers; `last` has all the chief's actions.
  void finish(WorkerId worker, bool finite = true, Duration took = from_seconds(0.1), std::uint32_t done = 0) {
    report_contributed(worker, finite, took, done);
    ChiefActions all = std::exchange(last, {});
    const Step step = orders.at(worker).step;
    for (std::uint32_t s = 0; s < servers_; ++s) {
      report_gathered(s, worker);
      all.insert(all.end(), last.begin(), last.end());
    }
    if (const auto order = orders.find(worker); order != orders.end() && order->second.step == step) {
      orders.erase(order);
      if (auto& next = later[worker]; !next.empty()) {
        orders[worker] = next.front();
        next.pop_front();
      }
    }
    last = std::move(all);
  }
  void lose(WorkerId worker) { step(Lost{worker}); }
  void lose_pending(std::uint32_t connection) { step(LostPending{connection}); }
  void tick_at(double seconds) {
    now = at_seconds(seconds);
    step(Tick{});
  }

  // The chief's actions ----------------------------------------------------------------------------------------------------------------

  template <class Fact>
  [[nodiscard]] std::vector<Fact> recorded() const {
    std::vector<Fact> facts;
    for (const ChiefAction& action : last)
      if (const auto* fact = std::get_if<Fact>(&action)) facts.push_back(*fact);
    return facts;
  }
  /// Messages of one kind; one for each server that receives it.
  template <class Message>
  [[nodiscard]] std::vector<Message> sent() const {
    std::vector<Message> messages;
    for (const ChiefAction& action : last)
      if (const auto* send = std::get_if<Send>(&action))
        if (const auto* message = std::get_if<Message>(&send->message)) messages.push_back(*message);
    return messages;
  }
  /// The workers that got an order after the last event.
  [[nodiscard]] std::vector<WorkerId> ordered() const {
    std::vector<WorkerId> workers;
    for (const auto& order : sent<wire::Order>()) workers.push_back(order.worker);
    return workers;
  }
};

/// A chief with this strategy and batches of 20.
inline ChiefDriver driver_of(const std::string& strategy, const ChiefOptions& options = small_job()) {
  return {options, {strategy, {}, {}}, 20};
}

}  // namespace motley::protocol
