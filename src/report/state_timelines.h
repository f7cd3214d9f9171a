// States and groups of runs as plain data for reports; empty for strategies without them. Part of comparison.h.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace motley::report {

/// How far apart the workers were.
enum class State : std::uint8_t { in_step, lagging, over_stale };
inline constexpr std::array every_state{State::in_step, State::lagging, State::over_stale};

/// Of a strategy with straggler states (`adaptive`).
struct States {
  struct Stretch {
    double begin_s{};
    double end_s{};
    State state{};
  };
  struct Straggling {
    double begin_s{};
    double end_s{};
    std::string why;
  };
  struct Mark {
    double time_s{};
    bool cancelled{};  // a step; else a contribution was discarded
    std::string why;
  };
  struct Worker {
    std::string name;
    std::vector<Straggling> straggling;
    std::vector<Mark> marks;
    double straggled_s{};
  };
  std::vector<Stretch> whole;  // the strategy's state; empty: it has none
  std::vector<Worker> workers;
  double cancelled{};  // steps
  double discarded{};  // contributions
  // By state:
  std::array<double, every_state.size()> lasted_s{};
  std::array<std::vector<std::uint64_t>, every_state.size()> staleness;  // [k] = contributions applied k versions late
};

/// Of a strategy with groups of similar workers (`grouped`).
struct Groups {
  struct Stretch {
    double begin_s{};
    double end_s{};
    std::size_t group{};
  };
  struct Worker {
    std::string name;
    std::vector<Stretch> stretches;
  };
  struct Rate {
    double time_s{};
    double rate{};  // times the weights of the update's members
  };
  std::vector<Worker> workers;           // empty: the strategy has no groups
  std::vector<std::vector<Rate>> rates;  // by group
};

}  // namespace motley::report
