// Scenarios: scripts that drive a chief, with its expected answers and their reasons, line by line, as in etcd/raft. MOTLEY_REWRITE=1
// rewrites the answers in tests/scenarios: check the diff.
// file    := lines; a block is commands, `----`, the answers, an empty line. `#` begins a comment.
// command := job key=value...          before the first join: samples, epoch, batch, evaluate, quorum, servers, refusals, silence,
//                                      empty, max_time
//            strategy name knob=value...
//            join a b c                each sends Hello on its own connection; from then on `a` is its newest membership
//            rejoin a                  sends Hello again on the same connection
//            finish a b [took=40ms]    each has computed, and every server has its complete contribution
//            nan a                     the same, with a value that is NaN
//            compute a [took=40ms]     the worker's half of finish; `gather a 0` is the half of server 0
//            die a | goodbye a | heartbeat a    a pending worker can only die
//            aligned c 7 by=0.5        every server answers the alignment test of step 7 of c
//            at 5s | tick 5s           sets the time; tick also lets the chief notice it
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/describe.hpp>
#include <boost/mp11.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "base/match.h"
#include "policy/strategies.h"
#include "protocol/chief.h"
#include "protocol/chief_driver_for_tests.h"

namespace motley {
namespace {

using Words = std::vector<std::string>;
using Arguments = std::map<std::string, std::string>;

struct BadScript : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Reading ------------------------------------------------------------------------------------------------------------------------------

Words split(const std::string& line) {
  std::istringstream in(line);
  Words words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

/// Removes the words of the form key=value from a command.
Arguments take_arguments(Words& words) {
  Arguments arguments;
  std::erase_if(words, [&](const std::string& word) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) return false;
    arguments[word.substr(0, equals)] = word.substr(equals + 1);
    return true;
  });
  return arguments;
}

double number(const std::string& text, std::string_view unit = "") {
  std::size_t end = 0;
  const double value = std::stod(text, &end);
  if (text.substr(end) != unit) throw BadScript(fmt::format("found \"{}\", expected a number{}{}", text, unit.empty() ? "" : " in ", unit));
  return value;
}

Duration duration(const std::string& text) {
  return text.ends_with("ms") ? from_seconds(number(text, "ms") / 1000) : from_seconds(number(text, "s"));
}

/// Sets the member called `name` of a described struct, if there is one.
template <class Struct>
void assign(Struct& target, const std::string& name, const std::string& value) {
  bool known = false;
  boost::mp11::mp_for_each<boost::describe::describe_members<Struct, boost::describe::mod_public>>([&](auto member) {
    if (name != member.name) return;
    known = true;
    using Value = typename std::decay_t<decltype(target.*member.pointer)>::value_type;
    if constexpr (std::is_enum_v<Value>) {
      Value chosen{};
      if (!boost::describe::enum_from_string(value.c_str(), chosen)) throw BadScript(fmt::format("found {}={}", name, value));
      target.*member.pointer = chosen;
    }
    if constexpr (std::is_arithmetic_v<Value>) target.*member.pointer = static_cast<Value>(number(value));
  });
  if (!known) throw BadScript(fmt::format("found the unknown knob \"{}\"", name));
}

// Writing ------------------------------------------------------------------------------------------------------------------------------

template <class Enum>
const char* name_of(Enum value) {
  return boost::describe::enum_to_string(value, "?");
}

std::string text(const Lease& lease) {
  std::string result;
  for (const Range& range : lease.ranges)
    result += fmt::format("{}[{},{}) of epoch {}", result.empty() ? "" : " and ", range.first, range.last, range.epoch);
  return result;
}

/// The chief's answers, one line each; facts that a later line repeats are left out.
class Answers {
 public:
  void add(const protocol::ChiefActions& actions) {
    for (const auto& action : actions) std::visit(*this, action);
  }
  [[nodiscard]] const Words& lines() const { return lines_; }

  void operator()(const protocol::Send& send) {
    if (send.to.role == protocol::Role::server && send.to.id > 0) return;  // the same message as to server 0
    std::visit(
        match{[&](const wire::Apply& m) { apply(m); },
              [&](const wire::Order& m) {
                line("  order w{} {}{}{}{}{}", m.worker.value, text(m.lease),
                     m.local_steps > 1 ? fmt::format(" in {} steps", m.local_steps) : "",
                     m.limit > Duration{0} ? fmt::format(" within {:.3g} ms", 1e3 * seconds(m.limit)) : "",
                     m.parameters != m.step ? fmt::format(" on the parameters of step {}", m.parameters.value) : "",
                     m.missing < m.step && m.correction > 0
                         ? fmt::format(", giving up {:.3g} of what it did since step {}", m.correction, m.missing.value)
                         : "");
              },
              [&](const wire::Discard& m) { line("discard w{}/{}", m.worker.value, m.step.value); },
              [&](const wire::AlignmentTest& m) { line("test alignment of w{}/{}", m.worker.value, m.step.value); },
              [](const wire::Cancel&) {},  // Cancelled covers it
              [&](const wire::Forget& m) { line("forget w{}", m.worker.value); },
              [&](const wire::Fenced& m) { line("fence w{}", m.worker.value); },
              [&](const wire::Stop&) { line("stop {}{}", send.to.role == protocol::Role::worker ? "w" : "pending worker ", send.to.id); },
              [](const wire::Welcome&) {},  // Joined covers it
              [](const wire::Release&) {},  // Released covers it
              [](const wire::Export&) {},   // Evaluate covers it
              [](const wire::Probe&) {},    // only the answer matters
              [&](const auto&) { line("a message that a chief does not send"); }},
        send.message);
  }
  void operator()(const protocol::Joined& fact) { line("join w{} = {}", fact.worker.value, fact.node); }
  void operator()(const protocol::Left& fact) { line("leave w{} ({})", fact.worker.value, name_of(fact.why)); }
  void operator()(const protocol::Completed&) {}  // the commands cover it
  void operator()(const protocol::Returned& fact) { line("return w{}/{} {}", fact.worker.value, fact.step.value, text(fact.lease)); }
  void operator()(const protocol::Counted& fact) { staleness_[{fact.worker, fact.step}] = fact.staleness; }
  void operator()(const protocol::Released& fact) {
    line("release w{} step {} at v{} ({})", fact.worker.value, fact.step.value, fact.version.value, name_of(fact.why));
  }
  void operator()(const protocol::Held& fact) { line("hold w{} ({}, gap {})", fact.worker.value, name_of(fact.why), fact.gap); }
  void operator()(const protocol::Dropped& fact) { line("drop w{}/{} ({})", fact.worker.value, fact.step.value, name_of(fact.why)); }
  void operator()(const protocol::Idled& fact) { line("rest w{}", fact.worker.value); }
  void operator()(const protocol::Cancelled& fact) { line("cancel w{}/{} ({})", fact.worker.value, fact.step.value, name_of(fact.why)); }
  void operator()(const protocol::Discarded& fact) { line("waste w{}/{} ({})", fact.worker.value, fact.step.value, name_of(fact.why)); }
  void operator()(const protocol::WakeAt&) {}  // the script sets the time
  void operator()(const protocol::Noted& fact) {
    std::visit(match{[&](const policy::StateNow& n) {
                       line("state: {} (gap {}, threshold {}, stragglers {})", name_of(n.state), n.gap, n.threshold, n.stragglers);
                     },
                     [&](const policy::Straggles& n) {
                       line("w{} straggles{} ({})", n.worker.value, n.now ? fmt::format(": {:.1f} medians", n.times) : " no more",
                            name_of(n.why));
                     },
                     [&](const policy::InGroup& n) { line("w{} in group {} of {}", n.worker.value, n.group, n.groups); }},
               fact.note);
  }
  void operator()(const protocol::Evaluate& fact) { line("evaluate v{} after {} samples", fact.version.value, fact.samples); }
  void operator()(const protocol::Checkpoint& fact) { line("checkpoint v{}", fact.state.version.value); }
  void operator()(const protocol::ServerStuck& fact) { line("server {} does not answer", fact.server.value); }
  void operator()(const protocol::Finished& fact) { line("end ({})", name_of(fact.why)); }

 private:
  template <class... Values>
  void line(fmt::format_string<Values...> format, Values&&... values) {
    lines_.push_back(fmt::format(format, std::forward<Values>(values)...));
  }
  void apply(const wire::Apply& update) {
    std::string parts;
    for (const wire::Part& part : update.parts) {
      parts += fmt::format(" w{}/{}*{:.4g}", part.worker.value, part.step.value, part.weight);
      if (const std::uint64_t late = staleness_.at({part.worker, part.step}); late > 0) parts += fmt::format(" (stale {})", late);
    }
    if (update.kind == wire::UpdateKind::bypass_momentum) parts += " past the momentum";
    if (update.compensation > 0) parts += ", compensated";
    line("apply v{}:{}", update.version.value, parts);
  }

  Words lines_;
  std::map<std::pair<WorkerId, Step>, std::uint64_t> staleness_;
};

// Playing ------------------------------------------------------------------------------------------------------------------------------

class Stage {
 public:
  Stage() {
    job_.epoch_samples = job_.total_samples = 96;
    job_.evaluate_every = 1'000'000;
  }

  void play(const std::string& line, Answers& answers) {
    Words words = split(line);
    const std::string command = words.front();
    words.erase(words.begin());
    const Arguments arguments = take_arguments(words);
    if (command == "job") return describe_job(arguments);
    if (command == "strategy") return choose_strategy(words.at(0), arguments);
    if (command == "at" || command == "tick") {
      chief().now = Instant{duration(words.at(0))};
      if (command == "tick") act(answers, [](auto& driver) { driver.step(protocol::Tick{}); });
      return;
    }
    if (command == "gather") {
      const auto server = static_cast<std::uint32_t>(number(words.at(1)));
      return act(answers, [&](auto& driver) { driver.report_gathered(server, worker(words.at(0))); });
    }
    if (command == "aligned") {
      const Step step{static_cast<std::uint64_t>(number(words.at(1)))};
      const double alignment = number(arguments.at("by"));
      const WorkerId target = last_known(words.at(0));
      return act(answers, [&](auto& driver) {
        for (std::uint32_t s = 0; s < job_.servers; ++s)
          driver.step(protocol::Received{protocol::peer(ServerId{s}), wire::AlignmentResult{ServerId{s}, target, step, alignment}});
      });
    }
    const Duration took = arguments.contains("took") ? duration(arguments.at("took")) : from_seconds(0.1);
    const std::uint32_t done = arguments.contains("done") ? static_cast<std::uint32_t>(number(arguments.at("done"))) : 0;
    for (const std::string& name : words) happen(command, name, {took, done}, answers);
  }

 private:
  struct Work {
    Duration took{};
    std::uint32_t done = 0;  // samples; 0: the whole lease
  };
  void happen(const std::string& command, const std::string& name, const Work& work, Answers& answers) {
    if (command == "join") connections_[name] = next_connection_++;
    act(answers, [&](protocol::ChiefDriver& driver) {
      if (command == "join" || command == "rejoin") {
        driver.hello(connections_.at(name), name, ++attempt_);
      } else if (command == "finish") {
        driver.finish(worker(name), true, work.took, work.done);
      } else if (command == "nan") {
        driver.finish(worker(name), false, work.took);
      } else if (command == "compute") {
        driver.report_contributed(worker(name), true, work.took, work.done);
      } else if (command == "die") {
        is_pending(name) ? driver.lose_pending(connections_.at(name)) : driver.lose(worker(name));
      } else if (command == "goodbye") {
        driver.say(worker(name), wire::Leaving{worker(name)});
      } else if (command == "heartbeat") {
        driver.say(worker(name), wire::Heartbeat{worker(name)});
      } else {
        throw BadScript(fmt::format("found the unknown command \"{}\"", command));
      }
    });
  }

  template <class Deed>
  void act(Answers& answers, Deed deed) {
    deed(chief());
    answers.add(chief().last);
  }

  void describe_job(const Arguments& arguments) {
    for (const auto& [key, value] : arguments) {
      if (key == "samples")
        job_.total_samples = static_cast<std::uint64_t>(number(value));
      else if (key == "epoch")
        job_.epoch_samples = static_cast<std::uint64_t>(number(value));
      else if (key == "batch")
        batch_ = job_.global_batch = static_cast<std::uint32_t>(number(value));
      else if (key == "evaluate")
        job_.evaluate_every = static_cast<std::uint64_t>(number(value));
      else if (key == "quorum")
        job_.quorum = static_cast<std::uint32_t>(number(value));
      else if (key == "servers")
        job_.servers = static_cast<std::uint32_t>(number(value));
      else if (key == "refusals")
        job_.refusals_in_a_row = static_cast<std::uint32_t>(number(value));
      else if (key == "silence")
        job_.silence_deadline = duration(value);
      else if (key == "empty")
        job_.empty_deadline = duration(value);
      else if (key == "max_time")
        job_.max_time = duration(value);
      else
        throw BadScript(fmt::format("found the unknown job key \"{}\"", key));
    }
  }

  void choose_strategy(const std::string& kind, const Arguments& arguments) {
    strategy_.kind = kind;
    for (const auto& [name, value] : arguments) assign(strategy_.knobs, name, value);
  }

  protocol::ChiefDriver& chief() {
    if (!hands_) hands_ = std::make_unique<protocol::ChiefDriver>(job_, strategy_, batch_);
    return *hands_;
  }
  [[nodiscard]] bool is_pending(const std::string& name) {
    return connections_.contains(name) && !chief().members.contains(connections_.at(name));
  }
  /// A member, or a former one.
  [[nodiscard]] WorkerId last_known(const std::string& name) { return chief().members.at(connections_.at(name)); }
  [[nodiscard]] WorkerId worker(const std::string& name) {
    if (!connections_.contains(name) || is_pending(name)) throw BadScript(fmt::format("found worker \"{}\", which was not admitted", name));
    return chief().members.at(connections_.at(name));
  }

  protocol::ChiefOptions job_;
  policy::StrategySpec strategy_;
  std::uint32_t batch_ = 24;
  std::unique_ptr<protocol::ChiefDriver> hands_;
  std::map<std::string, std::uint32_t> connections_;
  std::uint32_t next_connection_ = 0;
  std::uint32_t attempt_ = 0;
};

/// The file with the actual answers in place of the written ones.
std::string played(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string result;
  Stage stage;
  Answers answers;
  std::size_t number = 0;
  bool in_answers = false;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (in_answers && !line.empty()) continue;  // a written answer
    in_answers = false;
    result += line + "\n";
    if (line.empty() || line.front() == '#') continue;
    if (line == "----") {
      for (const std::string& answer : answers.lines()) result += answer + "\n";
      if (answers.lines().empty()) result += "(nothing)\n";
      answers = {};
      in_answers = true;
      continue;
    }
    try {
      stage.play(line, answers);
    } catch (const std::exception& error) {
      throw BadScript(fmt::format("{}:{}: {}: {}", file.string(), number, line, error.what()));
    }
  }
  return result;
}

// The tests ----------------------------------------------------------------------------------------------------------------------------

std::string contents(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::filesystem::path> files() {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(MOTLEY_SOURCE_DIR) / "tests/scenarios"))
    if (entry.path().extension() == ".txt") found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

class Scenario : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(Scenario, Has_the_expected_answers) {
  const std::string now = played(GetParam());
  if (std::getenv("MOTLEY_REWRITE") != nullptr) std::ofstream(GetParam()) << now;
  EXPECT_EQ(contents(GetParam()), now) << "MOTLEY_REWRITE=1 rewrites " << GetParam() << "";
}

INSTANTIATE_TEST_SUITE_P(All, Scenario, testing::ValuesIn(files()), [](const auto& scenario) {
  std::string name = scenario.param.stem().string();
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
});

TEST(Scenarios, Cover_every_strategy) {
  std::string all;
  for (const auto& file : files()) all += contents(file);
  for (const std::string_view name : policy::strategy_names())
    EXPECT_TRUE(all.find(fmt::format("\nstrategy {}\n", name)) != std::string::npos ||
                all.find(fmt::format("\nstrategy {} ", name)) != std::string::npos)
        << name << " is in no file of tests/scenarios";
}

}  // namespace
}  // namespace motley
