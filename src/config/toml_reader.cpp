#include "config/toml_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "config/renamed_keys.h"
#include "config/toml_nearest.h"
#include "config/units.h"

namespace motley::config {
namespace {

std::vector<std::string> in_quotes(std::span<const std::string> names) {
  std::vector<std::string> out;
  for (const std::string& name : names) out.push_back('"' + name + '"');
  return out;
}

/// "a number above 0, in seconds (mean length of a slowdown)"
std::string expectation(std::string_view kind, const Bounds& bounds, double refused, std::string_view meaning) {
  const std::string_view unit = bounds.unit;
  return fmt::format("{} {}{}{} ({})", kind, bounds.words(refused), unit.empty() ? "" : ", in ", unit, meaning);
}

/// Where a number is expected an integer is accepted, but not the reverse.
std::optional<double> as_number(const Value& value) {
  if (const auto* n = std::get_if<std::int64_t>(&value.held)) return static_cast<double>(*n);
  if (const auto* x = std::get_if<double>(&value.held)) return *x;
  return std::nullopt;
}

bool is_name(std::string_view text) {
  constexpr std::size_t longest = 56;  // leaves space for a node's number: peers accept 64 characters
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
  };
  return !text.empty() && text.size() <= longest && text.front() != '.' && std::all_of(text.begin(), text.end(), fits);
}

}  // namespace

void Complaints::add(std::string_view where, std::string_view key, std::string_view found, std::string_view expected,
                     std::string_view remedy) {
  lines_.push_back(fmt::format("{}: {}: found {}, expected {}{}{}", where, key, found, expected, remedy.empty() ? "" : "; ", remedy));
}

Error Complaints::error() const {
  check(!lines_.empty(), "an error is made of at least one complaint");
  constexpr std::size_t most = 10;
  const std::size_t shown = std::min(most, lines_.size());
  std::string message = fmt::format("{}", fmt::join(lines_.begin(), lines_.begin() + static_cast<std::ptrdiff_t>(shown), "\n"));
  if (lines_.size() > shown) message += fmt::format("\n... and {} more", lines_.size() - shown);
  return bad_input(std::move(message));
}

Reader::Reader(const Value& table, std::string path, Complaints& complaints, KeyTable* keys)
    : table_(std::get_if<Table>(&table.held)), where_(table.where), path_(std::move(path)), complaints_(&complaints), keys_(keys) {
  check(table_ != nullptr, "a reader is given a table");
}

std::string preset_text(double value) { return fmt::format("{:.10g}", value); }

std::string preset_text(const std::vector<std::uint64_t>& list) { return list.empty() ? "" : fmt::format("[{}]", fmt::join(list, ", ")); }

/// A default outside the limits stands for an absent value, so it is not shown.
void Reader::record(std::string_view key, std::string_view type, std::string preset, const Bounds& bounds, std::string_view meaning,
                    Presence presence) {
  const char* end = preset.c_str();
  char* stop = nullptr;
  const double value = std::strtod(end, &stop);
  if (stop != end && !bounds.accepts(value)) preset.clear();
  keys_->add(path_, {std::string(key), std::string(type), presence == Presence::required ? "required" : std::move(preset), bounds.range(),
                     bounds.unit, std::string(meaning)});
}

void Reader::record_choice(std::string_view key, std::string preset, std::span<const std::string> names, std::string_view meaning,
                           Presence presence) {
  keys_->add(path_, {std::string(key),
                     "choice",
                     presence == Presence::required ? "required" : std::move(preset),
                     fmt::format("{}", fmt::join(names, ", ")),
                     {},
                     std::string(meaning)});
}

std::string Reader::full(std::string_view key) const { return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key); }

const Value* Reader::ask(std::string_view key, std::string_view expected, Presence presence) {
  asked_.emplace(key);
  const Value* value = table_->find(key);
  if (value == nullptr && presence == Presence::required) complain(key, expected);
  return value;
}

void Reader::complain(std::string_view key, std::string_view expected, std::string_view remedy) {
  const Value* value = table_->find(key);
  complain_found(key, value == nullptr ? "nothing" : describe(*value), expected, remedy);
}

void Reader::complain_found(std::string_view key, std::string_view found, std::string_view expected, std::string_view remedy) {
  const Value* value = table_->find(key);
  complaints_->add(value == nullptr ? where_ : value->where, full(key), found, expected, remedy);
}

std::optional<double> Reader::read_number(std::string_view key, const Bounds& bounds, std::string_view meaning, Presence presence) {
  const Value* value = ask(key, expectation("a number", bounds, bounds.low, meaning), presence);
  if (value == nullptr) return std::nullopt;
  const auto x = as_number(*value);
  if (x && bounds.accepts(*x)) return x;
  complain_found(key, x ? describe(*value) : describe_kind(*value), expectation("a number", bounds, x.value_or(bounds.low), meaning));
  return std::nullopt;
}

std::optional<std::int64_t> Reader::check_integer(const Value& value, std::string_view key, const Bounds& bounds,
                                                  std::string_view meaning) {
  const auto* n = std::get_if<std::int64_t>(&value.held);
  if (n != nullptr && bounds.accepts(static_cast<double>(*n))) return *n;
  const double refused = n != nullptr ? static_cast<double>(*n) : bounds.low;
  complaints_->add(value.where, full(key), n != nullptr ? describe(value) : describe_kind(value),
                   expectation("an integer", bounds, refused, meaning));
  return std::nullopt;
}

std::optional<std::int64_t> Reader::read_integer(std::string_view key, const Bounds& bounds, std::string_view meaning, Presence presence) {
  const Value* value = ask(key, expectation("an integer", bounds, bounds.low, meaning), presence);
  return value == nullptr ? std::nullopt : check_integer(*value, key, bounds, meaning);
}

std::optional<std::vector<std::int64_t>> Reader::read_integers(std::string_view key, const Bounds& bounds, std::size_t longest,
                                                               std::string_view meaning) {
  const Value* value = ask(key, {}, Presence::optional);
  if (value == nullptr) return std::nullopt;
  const auto* array = std::get_if<Array>(&value->held);
  if (array == nullptr || array->empty() || array->size() > longest) {
    complain_found(key, describe_kind(*value), fmt::format("an array of 1 to {} integers ({})", longest, meaning));
    return std::nullopt;
  }
  std::vector<std::int64_t> out;
  for (const Value& element : *array) {
    const auto n = check_integer(element, key, bounds, meaning);
    if (!n) return std::nullopt;
    out.push_back(*n);
  }
  return out;
}

void Reader::seconds(std::string_view key, Duration& target, const Bounds& bounds, std::string_view meaning, Presence presence) {
  if (keys_ != nullptr) record(key, "number", preset_text(motley::seconds(target)), bounds.in("seconds"), meaning, presence);
  if (const auto x = read_number(key, bounds, meaning, presence)) target = from_seconds(*x);
}

void Reader::numbers(std::string_view key, std::vector<double>& target, const Bounds& bounds, std::size_t count, std::string_view meaning) {
  if (keys_ != nullptr) record(key, "numbers", {}, bounds, meaning, Presence::optional);
  const std::string expected = fmt::format("an array of {} numbers, each {} ({})", count, bounds.words(bounds.low), meaning);
  const Value* value = ask(key, expected, Presence::optional);
  if (value == nullptr) return;
  const auto* array = std::get_if<Array>(&value->held);
  if (array == nullptr) return complain_found(key, describe_kind(*value), expected);
  if (array->size() != count) return complain_found(key, fmt::format("{} of them", array->size()), expected);
  std::vector<double> out;
  for (const Value& element : *array) {
    const auto x = as_number(element);
    if (!x || !bounds.accepts(*x)) return complain_found(key, x ? describe(element) : describe_kind(element), expected);
    out.push_back(*x);
  }
  target = std::move(out);
}

void Reader::text(std::string_view key, std::string& target, std::string_view meaning, Presence presence) {
  if (keys_ != nullptr) record(key, "text", target, {}, meaning, presence);
  const std::string expected = fmt::format("a string ({})", meaning);
  const Value* value = ask(key, expected, presence);
  if (value == nullptr) return;
  if (const auto* text = std::get_if<std::string>(&value->held); text != nullptr && !text->empty())
    target = *text;
  else
    complain_found(key, describe_kind(*value), expected);
}

void Reader::name(std::string_view key, std::string& target, std::string_view meaning, Presence presence) {
  if (keys_ != nullptr) record(key, "name", target, {}, meaning, presence);
  const std::string expected = fmt::format("up to 56 letters, digits, '-', '_' or '.' ({})", meaning);
  const Value* value = ask(key, expected, presence);
  if (value == nullptr) return;
  if (const auto* text = std::get_if<std::string>(&value->held); text != nullptr && is_name(*text))
    target = *text;
  else
    complain_found(key, describe_kind(*value), expected);
}

std::optional<double> Reader::read_quantity(std::string_view key, Parser parse, const Bounds& bounds, std::string_view expected,
                                            Presence presence) {
  const Value* value = ask(key, expected, presence);
  if (value == nullptr) return std::nullopt;
  const auto* text = std::get_if<std::string>(&value->held);
  const auto x = text != nullptr ? parse(*text) : as_number(*value);
  if (x && bounds.accepts(*x)) return x;
  complain_found(key, x ? describe(*value) : describe_kind(*value), expected);
  return std::nullopt;
}

void Reader::bytes(std::string_view key, std::uint64_t& target, const Bounds& bounds, std::string_view meaning) {
  if (keys_ != nullptr) record(key, "bytes", preset_text(static_cast<double>(target)), bounds.in("bytes"), meaning, Presence::optional);
  const std::string expected = fmt::format("bytes, {}, such as 65536 or \"64KiB\" ({})", bounds.words(bounds.low), meaning);
  if (const auto x = read_quantity(key, parse_bytes, bounds, expected, Presence::optional)) target = static_cast<std::uint64_t>(*x);
}

void Reader::rate(std::string_view key, double& target, std::string_view meaning, Presence presence) {
  // The lower limit refuses links without capacity, the upper one typing errors.
  const Bounds bounds = between(1, 1e15).in("bytes/s");
  if (keys_ != nullptr) record(key, "rate", preset_text(target), bounds, meaning, presence);
  const std::string expected = fmt::format("bytes per second, from 1 to 1e15, such as 125e6, \"125MB/s\" or \"1Gbit/s\" ({})", meaning);
  if (const auto x = read_quantity(key, parse_rate, bounds, expected, presence)) target = *x;
}

namespace {

/// A choice may be written as a number or truth value: 32, true.
std::optional<std::string> word_of(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value.held)) return *text;
  if (const auto* number = std::get_if<std::int64_t>(&value.held)) return std::to_string(*number);
  if (const auto* flag = std::get_if<bool>(&value.held)) return *flag ? "true" : "false";
  return std::nullopt;
}

}  // namespace

std::optional<std::size_t> Reader::read_choice(std::string_view key, std::span<const std::string> names, Presence presence) {
  const std::string expected = fmt::format("one of {}", fmt::join(in_quotes(names), ", "));
  const Value* value = ask(key, expected, presence);
  if (value == nullptr) return std::nullopt;
  const std::optional<std::string> word = word_of(*value);
  const auto it = word ? std::find(names.begin(), names.end(), *word) : names.end();
  if (it != names.end()) return static_cast<std::size_t>(it - names.begin());
  if (std::holds_alternative<std::string>(value->held))
    complain(key, expected + did_you_mean(*word, names));
  else
    complain_found(key, describe_kind(*value), expected);
  return std::nullopt;
}

void Reader::choice(std::string_view key, std::string& target, std::span<const std::string_view> options, std::string_view meaning,
                    Presence presence) {
  const std::vector<std::string> names(options.begin(), options.end());
  if (keys_ != nullptr) record_choice(key, target, names, meaning, presence);
  if (const auto index = read_choice(key, names, presence)) target = names[*index];
}

Reader Reader::section(std::string_view key, std::string_view meaning) {
  if (keys_ != nullptr) keys_->add_section(full(key), false, meaning);
  static const Value empty{Table{}, {}};
  const Value* value = ask(key, {}, Presence::optional);
  if (value != nullptr && !std::holds_alternative<Table>(value->held)) {
    complain_found(key, describe_kind(*value), fmt::format("a table, [{}]", full(key)));
    value = nullptr;
  }
  Reader out(value == nullptr ? empty : *value, full(key), *complaints_, keys_);
  if (value == nullptr) out.where_ = where_;
  return out;
}

std::vector<Reader> Reader::sections(std::string_view key, Presence presence, std::string_view meaning) {
  if (keys_ != nullptr) keys_->add_section(full(key), true, meaning);
  std::vector<Reader> out;
  const std::string at_least_one = fmt::format("at least one [[{}]]", full(key));
  const Value* value = ask(key, at_least_one, presence);
  if (value == nullptr) return out;
  const auto* array = std::get_if<Array>(&value->held);
  if (array == nullptr) {
    complain_found(key, describe_kind(*value), fmt::format("an array of tables, [[{}]]", full(key)));
    return out;
  }
  if (array->empty() && presence == Presence::required) complain(key, at_least_one);
  for (const Value& element : *array) {
    if (std::holds_alternative<Table>(element.held))
      out.emplace_back(element, full(key), *complaints_, keys_);
    else
      complaints_->add(element.where, full(key), describe_kind(element), fmt::format("a table, [[{}]]", full(key)));
  }
  return out;
}

void Reader::finish() {
  const std::vector<std::string> known(asked_.begin(), asked_.end());
  for (const Entry& entry : table_->entries) {
    if (asked_.contains(entry.key)) continue;
    if (const auto now = renamed_key(entry.key); now && asked_.contains(*now))
      complaints_->add(entry.value.where, full(entry.key), "a key of an older version", *now,
                       fmt::format("{} is now called {}", entry.key, *now));
    else
      complaints_->add(entry.value.where, full(entry.key), "an unknown key",
                       fmt::format("one of {}", fmt::join(known, ", ")) + did_you_mean(entry.key, known));
  }
}

}  // namespace motley::config
