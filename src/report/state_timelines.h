// What a report shows of runs that told states or groups, as plain data; empty for all others. Part of comparison.h.
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

/// Of a strategy that treats stragglers on their own (`adaptive`).
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
  std::vector<Stretch> whole;  // of all together; empty: no states were told
  std::vector<Worker> workers;
  double cancelled{};  // steps
  double discarded{};  // contributions
  // By state:
  std::array<double, every_state.size()> lasted_s{};
  std::array<std::vector<std::uint64_t>, every_state.size()> staleness;  // [k] = contributions applied k versions late
};

/// Of a strategy that lets equals work in step (`grouped`).
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
  std::vector<Worker> workers;           // empty: no groups were told
  std::vector<std::vector<Rate>> rates;  // by group
};

}  // namespace motley::report
