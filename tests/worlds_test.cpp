// Seeded worlds: random clusters, faults and strategies, each run twice under every checker. A failure prints its seed.
//   MOTLEY_WORLDS=n       how many (200)          MOTLEY_WORLDS_FROM=k   the first seed (0)
//   MOTLEY_WORLD_SEED=k   only this one, with its trace as text
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "checkers.h"
#include "policy/strategies.h"
#include "sim/real_numbers.h"
#include "sim/world.h"
#include "trace/fields.h"
#include "trace/sinks.h"
#include "world_maker.h"

namespace motley::worlds {
namespace {

using checkers::Checker;
using checkers::Complaint;
using checkers::Liveness;
using checkers::StalenessBound;
using checkers::WeightsSum;
using protocol::EndReason;
using protocol::LeaveReason;

// The guarantees of each strategy, as numbers for the checkers -----------------------------------------------------------------------

bool has_barrier(const MadeWorld& made) {
  const std::string& kind = made.strategy.kind;
  return kind == "bsp" || kind == "lb-bsp" || kind == "local-sgd";
}

StalenessBound::Allowed allowed_staleness(const MadeWorld& made) {
  const std::string& kind = made.strategy.kind;
  const policy::Knobs& knobs = made.strategy.knobs;
  if (has_barrier(made)) return {.staleness = 0, .ahead = {}};
  if (kind == "hps" || kind == "multistep") return {.staleness = knobs.overlap.value_or(1), .ahead = {}};
  if (kind != "ssp" && kind != "dssp") return {};
  const std::uint64_t lower = knobs.bound.value_or(3);
  const std::uint64_t upper = kind == "ssp" ? lower : std::max<std::uint64_t>(lower, knobs.bound_max.value_or(15));
  StalenessBound::Allowed allowed{.staleness = {}, .ahead = upper};
  if (made.fixed_membership()) allowed.staleness = (made.options.cluster.nodes.size() - 1) * (2 * upper + 2);
  return allowed;
}

WeightsSum::Law weight_law(const MadeWorld& made) {
  const std::string& kind = made.strategy.kind;
  const bool guarded =
      kind == "asp" || kind == "asp-look" || kind == "ssp" || kind == "dssp" || kind == "hps" || kind == "adaptive" || kind == "grouped";
  const bool clips = made.strategy.knobs.clip.value_or(guarded ? 1.5 : 0) > 0;
  return {.of = kind == "local-sgd" || kind == "multistep" ? WeightsSum::Of::models : WeightsSum::Of::gradients,
          .global_batch = static_cast<double>(made.setting.global_batch),
          .clipped = kind == "adaptive" || kind == "grouped" ||        // late contributions weigh less; K groups divide the momentum
                     (clips && made.arithmetic != Arithmetic::none)};  // without values there is no norm to clip
}

std::vector<std::unique_ptr<Checker>> every_checker(const MadeWorld& made) {
  const Limits limits = limits_of(made);
  const protocol::ChiefOptions& chief = made.options.chief;
  std::vector<std::unique_ptr<Checker>> all;
  all.push_back(std::make_unique<checkers::TimeOnlyGrows>());
  all.push_back(std::make_unique<checkers::VersionsOnlyGrow>());
  all.push_back(std::make_unique<StalenessBound>(allowed_staleness(made)));
  if (has_barrier(made)) all.push_back(std::make_unique<checkers::RoundsDoNotOverlap>());
  all.push_back(std::make_unique<checkers::EverySampleOnce>(chief.epoch_samples, chief.total_samples));
  all.push_back(std::make_unique<Liveness>(Liveness::Patience{limits.longest_quiet, limits.longest_stage, chief.empty_deadline}));
  all.push_back(std::make_unique<WeightsSum>(weight_law(made)));
  all.push_back(std::make_unique<checkers::FormerMembersFenced>());
  all.push_back(std::make_unique<checkers::WithinMemory>(made.options.max_batch));
  return all;
}

// Running one world ---------------------------------------------------------------------------------------------------------------------

struct Ran {
  sim::TrainingOutcome outcome;
  std::string fingerprint;
  std::vector<float> model;            // empty without arithmetic
  std::size_t contributions_held = 0;  // at the end
};

Ran run(const MadeWorld& made, std::vector<trace::Sink*> sinks) {
  trace::Writer writer;
  sinks.push_back(&writer);
  trace::Tee tee(sinks);
  auto strategy = policy::make_strategy(made.strategy, made.setting);
  check(strategy.ok(), "the maker uses existing strategies");
  const protocol::ChiefOptions& chief = made.options.chief;
  const policy::LrSchedule schedule({}, made.setting.global_batch, chief.epoch_samples, chief.total_samples);
  Ran ran;
  if (made.arithmetic == Arithmetic::none) {
    sim::NoNumbers none;
    ran.outcome = sim::World(made.options, std::move(*strategy), schedule, none, tee).run();
  } else {
    // One NaN gradient spoils a whole round, and small memories make rounds of hundreds of steps.
    const std::uint64_t one_in = made.strategy.kind == "multistep" ? 1'000 : 20;
    MadeUpGradients source(made.parameters, made.seed, made.arithmetic == Arithmetic::sometimes_broken ? one_in : 0);
    sim::RealNumbersOptions options;
    options.layout = made.options.layout;
    options.parameters = made.parameters;
    options.epoch_samples = chief.epoch_samples;
    options.seed = made.seed;
    options.local_steps = strategy->payload() == policy::Payload::delta;
    options.local_momentum = strategy->momentum();
    options.tracks_updates = strategy->tracks_updates();
    options.control_variate = strategy->control_variate();
    sim::RealNumbers numbers(std::move(options), source);
    ran.outcome = sim::World(made.options, std::move(*strategy), schedule, numbers, tee).run();
    ran.model.resize(made.options.layout.values);
    numbers.values(ran.model);
    ran.contributions_held = numbers.contributions_held();
  }
  ran.fingerprint = writer.finish();
  return ran;
}

/// Counts events over all worlds, because worlds without faults would test nothing.
class Tally : public trace::Sink {
 public:
  void on_event(const trace::Event& event) override {
    if (const auto* fault = event.as<trace::FaultInjected>()) ++faults_[static_cast<cluster::FaultKind>(fault->kind)];
    if (const auto* left = event.as<trace::Left>()) ++gone_[static_cast<LeaveReason>(left->why)];
    if (const auto* finished = event.as<trace::Finished>()) ++ended_[static_cast<EndReason>(finished->why)];
    if (event.is<trace::Dropped>()) ++dropped_;
  }
  void ran(const MadeWorld& made) { ++strategies_[made.strategy.kind]; }
  /// Strategies, faults, kinds of leaving and valid ends that never happened.
  [[nodiscard]] std::string missing() const {
    std::string list;
    for (const std::string_view strategy : policy::strategy_names())
      if (!strategies_.contains(std::string(strategy))) list += fmt::format("strategy {}; ", strategy);
    if (faults_.size() < 6) list += "a kind of fault; ";
    if (gone_.size() < 3) list += "a way of leaving; ";
    if (dropped_ == 0) list += "a dropped contribution; ";
    for (const EndReason ended : {EndReason::every_sample_counted, EndReason::nobody_left})
      if (!ended_.contains(ended)) list += fmt::format("end {}; ", static_cast<int>(ended));
    return list;
  }

 private:
  std::map<std::string, std::uint64_t> strategies_;
  std::map<cluster::FaultKind, std::uint64_t> faults_;
  std::map<LeaveReason, std::uint64_t> gone_;
  std::map<EndReason, std::uint64_t> ended_;
  std::uint64_t dropped_ = 0;
};

/// Prints the events.
class PrintingSink : public trace::Sink {
 public:
  void on_event(const trace::Event& e) override {
    std::cout << fmt::format("{:12.6f} {:13}", seconds(e.at), name_of(e.data));
    std::visit([](const auto& data) { print_fields(data); }, e.data);
    std::cout << "\n";
  }

 private:
  template <class T>
  static void print_fields(const T& data) {
    boost::mp11::mp_for_each<trace::Fields<T>>([&](auto field) {
      const auto& value = data.*field.pointer;
      if constexpr (requires { value.value; })
        std::cout << fmt::format(" {} {}", field.name, value.value);
      else if constexpr (requires { seconds(value); })
        std::cout << fmt::format(" {} {:.6g} s", field.name, seconds(value));
      else
        std::cout << fmt::format(" {} {:.6g}", field.name, static_cast<double>(value));
    });
  }
};

/// Steps that were cancelled and computed nevertheless: when training ends, their results may still be in flight, to be discarded.
class ComputedInVain : public trace::Sink {
 public:
  void on_event(const trace::Event& e) override {
    if (const auto* cancelled = e.as<trace::Cancelled>()) cancelled_.insert({cancelled->worker, cancelled->step});
    if (const auto* computed = e.as<trace::ComputeEnded>()) computed_.insert({computed->worker, computed->step});
  }
  [[nodiscard]] std::size_t count() const {
    return static_cast<std::size_t>(
        std::count_if(cancelled_.begin(), cancelled_.end(), [&](const auto& step) { return computed_.contains(step); }));
  }

 private:
  std::set<std::pair<WorkerId, Step>> cancelled_;
  std::set<std::pair<WorkerId, Step>> computed_;
};

/// The violations in this world; empty when there are none. `listeners` get the events of the first of its two runs.
std::string troubles_of(const MadeWorld& made, const std::vector<trace::Sink*>& listeners, std::string& fingerprint) {
  std::ostringstream troubles;
  try {
    const auto checkers = every_checker(made);
    std::vector<trace::Sink*> sinks = listeners;
    ComputedInVain in_vain;
    sinks.push_back(&in_vain);
    for (const auto& checker : checkers) sinks.push_back(checker.get());
    const Ran first = run(made, sinks);
    for (const auto& checker : checkers) {
      checker->closed();
      for (const Complaint& complaint : checker->complaints()) troubles << checker->name() << ": " << complaint << "\n";
    }
    if (!std::all_of(first.model.begin(), first.model.end(), [](float x) { return std::isfinite(x); }))
      troubles << "the model holds values that are not numbers\n";
    if (first.outcome.why == EndReason::every_sample_counted && first.contributions_held > in_vain.count())
      troubles << first.contributions_held << " contributions are held though every one was applied or discarded\n";
    if (run(made, {}).fingerprint != first.fingerprint) troubles << "the same world gave two different runs\n";
    fingerprint = first.fingerprint;
  } catch (const std::exception& broken) {
    troubles << broken.what() << "\n";
  }
  return troubles.str();
}

std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(Worlds, Every_seed_keeps_the_invariants) {
  const bool alone = std::getenv("MOTLEY_WORLD_SEED") != nullptr;
  const std::uint64_t first = number_from_environment(alone ? "MOTLEY_WORLD_SEED" : "MOTLEY_WORLDS_FROM", 0);
  const std::uint64_t count = alone ? 1 : number_from_environment("MOTLEY_WORLDS", 200);
  Tally tally;
  PrintingSink aloud;
  std::set<std::string> fingerprints;
  int failed = 0;
  for (std::uint64_t seed = first; seed < first + count && failed < 5; ++seed) {
    const MadeWorld made = make_world(seed);
    if (alone) std::cout << describe(made);
    std::string fingerprint;
    std::string troubles =
        troubles_of(made, alone ? std::vector<trace::Sink*>{&tally, &aloud} : std::vector<trace::Sink*>{&tally}, fingerprint);
    if (troubles.empty() && !fingerprints.insert(fingerprint).second) troubles = "two seeds gave the same run\n";
    tally.ran(made);
    if (troubles.empty()) continue;
    ++failed;
    ADD_FAILURE() << describe(made) << troubles << "replay: MOTLEY_WORLD_SEED=" << seed << " tests/worlds_test";
  }
  if (count >= 200 && failed == 0) {
    EXPECT_EQ(tally.missing(), "") << "the generated worlds have too few kinds of faults";
  }
}

// Worlds made by hand -----------------------------------------------------------------------------------------------------------------

MadeWorld quiet_world() {
  MadeWorld made = make_world(0);
  made.options.cluster.faults.clear();
  made.arithmetic = Arithmetic::none;
  made.strategy = {"bsp", {}, {}};
  return made;
}

TEST(Worlds, World_without_workers_ends_with_nobody_left) {
  for (const std::string_view strategy : policy::strategy_names()) {
    MadeWorld made = quiet_world();
    made.strategy.kind = std::string(strategy);
    made.options.chief.total_samples = made.options.chief.epoch_samples = 1'000'000;
    for (std::uint32_t n = 0; n < made.options.cluster.nodes.size(); ++n)
      made.options.cluster.faults.push_back({at_seconds(0.2), cluster::FaultKind::kill, NodeId{n}, {}, 1});
    std::string fingerprint;
    EXPECT_EQ(troubles_of(made, {}, fingerprint), "");
    EXPECT_EQ(run(made, {}).outcome.why, EndReason::nobody_left);
  }
}

TEST(Worlds, Endless_world_is_stopped_by_its_bound) {
  MadeWorld made = quiet_world();
  made.options.max_events = 50;
  EXPECT_THROW((void)run(made, {}), Bug);
}

}  // namespace
}  // namespace motley::worlds
