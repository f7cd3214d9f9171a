// Exhaustive small worlds: the real chief, shard and worker machines, driven by a search that tries every order in which their messages can
// arrive, with one failure at every possible moment.
// Lanes keep their order (control: chief-worker, chief-server; bulk: worker-server), each direction by itself; between lanes any message
// may overtake any other. A failure hits one worker, once: its connection breaks (its pushes still arrive, or never do), it is taken for
// dead while it computes, it leaves in good order, or a contribution of it contains NaN.
//
// Exhaustive: with two workers, every reachable state is visited. Two orders of arrival lead to one state when every machine has the same
// state: a server its version, former members and gathered slices; a worker that begins to compute only its order; the chief the order of
// everything but the parts of an incomplete contribution (the strategy learns of it only when it is complete). With MOTLEY_WORLDS=5000 or
// more (`make soak`) also with two servers: ten million states, some minutes.
// Bounded: three workers and two servers are searched at random, from printed seeds and without merging states. Time stands still,
//   so the effect of measured speeds is not varied here; worlds_test.cpp does that.
#include "small_world.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <unordered_map>

#include "base/rng.h"

namespace motley::small_worlds {
namespace {

using Path = std::vector<Choice>;

std::string in_words(const SmallJob& job, const Path& path) {
  SmallWorld world(job);
  std::string words = fmt::format("{}, {} workers, {} servers, quorum {}:\n", job.strategy, job.workers, job.servers, job.quorum);
  for (const Choice& choice : path) {
    words += "  " + world.describe(choice) + "\n";
    try {
      world.take(choice);
    } catch (const std::exception&) {
      break;  // the last choice is the one that failed
    }
  }
  return words;
}

struct Explored {
  std::size_t states = 0;
  std::size_t ends = 0;
  std::string trouble;  // the first violation with the path to it; empty: none
};

/// Choices that need not be tried in a state, because trying them earlier reaches the same states (sleep sets, Godefroid 1996). Sorted.
using Asleep = std::vector<Choice>;

Asleep in_both(const Asleep& a, const Asleep& b) {
  Asleep both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

Asleep only_in_first(const Asleep& a, const Asleep& b) {
  Asleep rest;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(rest));
  return rest;
}

/// Visits every reachable state, depth first, and reports the first violation.
class Search {
 public:
  explicit Search(SmallJob job) : job_(std::move(job)) {}

  Explored run() {
    branches_.push_back({});
    while (!branches_.empty() && explored_.trouble.empty()) {
      Branch branch = std::move(branches_.back());
      branches_.pop_back();
      try {
        follow(branch);
      } catch (const std::exception& broken) {
        explored_.trouble = broken.what();
      }
      if (!explored_.trouble.empty()) explored_.trouble = in_words(job_, branch.path) + explored_.trouble;
    }
    explored_.states = seen_.size();
    return explored_;
  }

 private:
  struct Branch {
    Path path;      // the choices from the beginning
    Asleep asleep;  // in the state at its end
  };

  /// Follows a branch to an end or a known state. A world cannot be copied (a strategy owns its mechanisms), so a branch is reached by
  /// repeating its choices.
  void follow(Branch& branch) {
    SmallWorld world(job_);
    for (const Choice& choice : branch.path) world.take(choice);
    for (;;) {
      if (!world.all_is_well()) explored_.trouble = world.troubles(false);
      if (!explored_.trouble.empty()) return;
      const std::vector<Choice> choices = world.choices();
      if (choices.empty()) {
        if (seen_.try_emplace(world.fingerprint()).second) {
          ++explored_.ends;
          explored_.trouble = world.troubles(true);
        }
        return;
      }
      const std::vector<Choice> awake = to_try(world.fingerprint(), choices, branch.asleep);
      if (awake.empty()) return;
      for (std::size_t i = awake.size(); i-- > 1;) branches_.push_back(after(world, branch, awake, i));
      branch = after(world, branch, awake, 0);
      world.take(branch.path.back());
    }
  }

  /// The choices not yet tried in this state.
  std::vector<Choice> to_try(std::uint64_t state, std::vector<Choice> choices, const Asleep& asleep) {
    std::sort(choices.begin(), choices.end());
    const auto [seen, fresh] = seen_.try_emplace(state, asleep);
    if (fresh) return only_in_first(choices, asleep);
    std::vector<Choice> missed = only_in_first(in_both(choices, seen->second), asleep);
    seen->second = in_both(seen->second, asleep);
    return missed;
  }

  /// The branch that takes awake[i], after the ones before it have been tried.
  static Branch after(const SmallWorld& world, const Branch& branch, const std::vector<Choice>& awake, std::size_t i) {
    Branch next{branch.path, {}};
    next.path.push_back(awake[i]);
    next.asleep = branch.asleep;
    next.asleep.insert(next.asleep.end(), awake.begin(), awake.begin() + static_cast<std::ptrdiff_t>(i));
    std::erase_if(next.asleep, [&](const Choice& choice) { return !world.independent(choice, awake[i]); });
    std::sort(next.asleep.begin(), next.asleep.end());
    return next;
  }

  SmallJob job_;
  std::unordered_map<std::uint64_t, Asleep> seen_;
  std::vector<Branch> branches_;
  Explored explored_;
};

/// One random order of events with at most one failure. Returns the violations; empty when there are none.
std::string run_round(const SmallJob& job, std::uint64_t seed) {
  Rng rng(seed, "random order");
  Path path;
  try {
    SmallWorld world(job);
    for (std::vector<Choice> choices = world.choices(); !choices.empty(); choices = world.choices()) {
      // Failures are a large part of the choices: with equal probability all of them would happen at the very beginning.
      Choice choice = choices[rng.below(choices.size())];
      if (choice.what == Choice::What::failure && rng.below(20) != 0) choice = choices.front();
      path.push_back(choice);
      world.take(choice);
    }
    const std::string trouble = world.troubles(true);
    return trouble.empty() ? "" : in_words(job, path) + trouble;
  } catch (const std::exception& broken) {
    return in_words(job, path) + broken.what();
  }
}

// The tests
// ---------------------------------------------------------------------------------------------------------------------------------

std::uint64_t worlds_wanted() {
  const char* text = std::getenv("MOTLEY_WORLDS");
  return text == nullptr ? 200 : std::strtoull(text, nullptr, 10);
}

class SmallWorlds : public testing::TestWithParam<std::string_view> {
 protected:
  static void search(SmallJob job) {
    job.strategy = std::string(GetParam());
    const Explored explored = Search(job).run();
    EXPECT_EQ(explored.trouble, "");
    EXPECT_GT(explored.ends, 100U) << "the search reached only a few ends";
    RecordProperty("states", std::to_string(explored.states));
  }
};

// Two steps for one of them, one for the other, which then rests.
TEST_P(SmallWorlds, Two_workers_keep_the_invariants_in_every_order) {
  search({.samples = 3});
  if (worlds_wanted() >= 5000) search({.servers = 2, .samples = 3});
}

// The second worker joins while the first computes.
TEST_P(SmallWorlds, Worker_may_join_at_any_moment) { search({.quorum = 1, .samples = 2}); }

TEST_P(SmallWorlds, Three_workers_two_servers_keep_the_invariants) {
  const SmallJob job{.strategy = std::string(GetParam()), .workers = 3, .servers = 2, .slices = 4, .quorum = 2, .batch = 3, .samples = 9};
  for (std::uint64_t seed = 0; seed < 5 * worlds_wanted(); ++seed) {
    const std::string trouble = run_round(job, seed);
    ASSERT_EQ(trouble, "") << "seed " << seed;
  }
}

// One step of overlap, and steps whose time limit ends after one sample: the rest goes to the next order, also after deaths.
TEST(SmallWorldsOverlapped, Remaining_samples_count_once_in_every_order) {
  const Explored explored = Search({.strategy = "hps", .batch = 4, .samples = 6, .overlap = 1}).run();
  EXPECT_EQ(explored.trouble, "");
  EXPECT_GT(explored.ends, 100U);
}

TEST(SmallWorldsOverlapped, Three_workers_keep_the_invariants) {
  const SmallJob job{.strategy = "hps", .workers = 3, .servers = 2, .slices = 4, .quorum = 2, .batch = 6, .samples = 30, .overlap = 1};
  for (std::uint64_t seed = 0; seed < 5 * worlds_wanted(); ++seed) {
    const std::string trouble = run_round(job, seed);
    ASSERT_EQ(trouble, "") << "seed " << seed;
  }
}

// Local rounds that overlap: a worker that dies during one, or while newer parameters arrive, removes no counted sample.
TEST(SmallWorldsOverlapped, Local_rounds_count_once_in_every_order) {
  const Explored explored = Search({.strategy = "multistep", .batch = 2, .samples = 4, .overlap = 1}).run();
  EXPECT_EQ(explored.trouble, "");
  EXPECT_GT(explored.ends, 100U);
}

TEST(SmallWorldsOverlapped, Three_workers_with_local_steps_keep_the_invariants) {
  const SmallJob job{
      .strategy = "multistep", .workers = 3, .servers = 2, .slices = 4, .quorum = 2, .batch = 6, .samples = 300, .overlap = 1};
  for (std::uint64_t seed = 0; seed < 5 * worlds_wanted(); ++seed) {
    const std::string trouble = run_round(job, seed);
    ASSERT_EQ(trouble, "") << "seed " << seed;
  }
}

// The clock may advance at any moment: a computing worker then becomes a straggler, is applied late, over-stale, tested, dropped or
// cancelled; and it may die in each of these states.
TEST(SmallWorldsOfStates, Every_sample_counts_once_in_every_state_and_order) {
  const Explored explored = Search({.strategy = "adaptive", .samples = 3, .ticks = 1}).run();
  EXPECT_EQ(explored.trouble, "");
  EXPECT_GT(explored.ends, 100U);
}

TEST(SmallWorldsOfStates, Three_workers_keep_the_invariants) {
  const SmallJob job{.strategy = "adaptive", .workers = 3, .servers = 2, .slices = 4, .quorum = 2, .batch = 3, .samples = 30, .ticks = 6};
  for (std::uint64_t seed = 0; seed < 5 * worlds_wanted(); ++seed) {
    const std::string trouble = run_round(job, seed);
    ASSERT_EQ(trouble, "") << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Every, SmallWorlds, testing::ValuesIn(policy::strategy_names().begin(), policy::strategy_names().end()),
                         [](const auto& strategy) {
                           std::string name(strategy.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace motley::small_worlds
