// Reads one table of a TOML document key by key, checks each value and records the keys it was asked for; other keys are errors.
// A refused value adds an error and leaves its target unchanged, so that one pass finds every error of a file.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/time.h"
#include "config/key_table.h"
#include "config/toml_bounds.h"
#include "config/toml_value.h"

namespace motley::config {

/// The errors of a document, one line each: "x.toml:12: cluster.node.jitter: found -1, expected a number of at least 0 (...)".
class Complaints {
 public:
  /// `remedy` may be empty.
  void add(std::string_view where, std::string_view key, std::string_view found, std::string_view expected, std::string_view remedy = {});
  void add_line(std::string line) { lines_.push_back(std::move(line)); }
  [[nodiscard]] bool empty() const { return lines_.empty(); }
  /// The first ten lines and the number of further ones. Must not be empty.
  [[nodiscard]] Error error() const;

 private:
  std::vector<std::string> lines_;
};

enum class Presence { optional, required };
inline constexpr Presence required = Presence::required;

/// A word of the file and its value.
template <class T>
struct Named {
  std::string_view name;
  T value;
};
template <class T>
Named(std::string_view, T) -> Named<T>;

/// A default as the reference page shows it.
[[nodiscard]] std::string preset_text(double value);
[[nodiscard]] std::string preset_text(const std::vector<std::uint64_t>& list);

/// Complaints, table and key table must outlive the reader.
class Reader {
 public:
  /// `table` must hold a Table. `path` is the prefix of keys in errors: "cluster.node". `keys`, if given, gets a row for each key read.
  Reader(const Value& table, std::string path, Complaints& complaints, KeyTable* keys = nullptr);

  // Each sets `target` (a number or an optional one) when the key is present and valid. `meaning` describes the value.
  template <class T>
  void number(std::string_view key, T& target, const Bounds& bounds, std::string_view meaning, Presence presence = {}) {
    if (keys_ != nullptr) record(key, "number", preset_of(target), bounds, meaning, presence);
    if (const auto x = read_number(key, bounds, meaning, presence)) target = *x;
  }
  /// A duration in seconds.
  void seconds(std::string_view key, Duration& target, const Bounds& bounds, std::string_view meaning, Presence presence = {});
  template <class T>
  void integer(std::string_view key, T& target, const Bounds& bounds, std::string_view meaning, Presence presence = {}) {
    if (keys_ != nullptr) record(key, "integer", preset_of(target), bounds, meaning, presence);
    if (const auto n = read_integer(key, bounds, meaning, presence)) target = static_cast<Plain<T>>(*n);
  }
  /// An array of 1 to `longest` integers.
  template <class T>
  void integers(std::string_view key, std::vector<T>& target, const Bounds& bounds, std::size_t longest, std::string_view meaning) {
    if (keys_ != nullptr) record(key, "integers", preset_text({target.begin(), target.end()}), bounds, meaning, Presence::optional);
    if (const auto list = read_integers(key, bounds, longest, meaning)) target.assign(list->begin(), list->end());
  }
  /// An array of exactly `count` numbers.
  void numbers(std::string_view key, std::vector<double>& target, const Bounds& bounds, std::size_t count, std::string_view meaning);
  void text(std::string_view key, std::string& target, std::string_view meaning, Presence presence = {});
  /// Text of letters, digits, '.', '_' and '-', which may become a file name or a part of a path of keys.
  void name(std::string_view key, std::string& target, std::string_view meaning, Presence presence = {});
  /// A number of bytes, or text with a unit: "64KiB".
  void bytes(std::string_view key, std::uint64_t& target, const Bounds& bounds, std::string_view meaning);
  /// Bytes per second, or text with a unit: "134.6MB/s", "1Gbit/s".
  void rate(std::string_view key, double& target, std::string_view meaning, Presence presence = {});
  template <class T>
  void choice(std::string_view key, T& target, std::span<const Named<T>> options, std::string_view meaning, Presence presence = {}) {
    std::vector<std::string> names;
    std::string preset;
    for (const auto& option : options) {
      names.emplace_back(option.name);
      if (option.value == target) preset = option.name;
    }
    if (keys_ != nullptr) record_choice(key, preset, names, meaning, presence);
    if (const auto index = read_choice(key, names, presence)) target = options[*index].value;
  }
  void choice(std::string_view key, std::string& target, std::span<const std::string_view> options, std::string_view meaning,
              Presence presence = {});

  /// The table under `key`; an empty one when it is absent.
  Reader section(std::string_view key, std::string_view meaning = {});
  /// The tables of the array under `key`; none when it is absent.
  std::vector<Reader> sections(std::string_view key, Presence presence = {}, std::string_view meaning = {});

  /// Whether the document has had no error so far.
  [[nodiscard]] bool clean() const { return complaints_->empty(); }
  [[nodiscard]] bool has(std::string_view key) const { return table_->find(key) != nullptr; }
  /// Adds an error about the value under `key`, or about its absence; for checks that only the caller can make.
  void complain(std::string_view key, std::string_view expected, std::string_view remedy = {});
  /// The same with another description of the value found.
  void complain_found(std::string_view key, std::string_view found, std::string_view expected, std::string_view remedy = {});
  /// Must be called last: every key that was not read is an error, which names the key's new name or the nearest known key.
  void finish();

 private:
  template <class T>
  struct PlainOf {
    using type = T;
  };
  template <class T>
  struct PlainOf<std::optional<T>> {
    using type = T;
  };
  template <class T>
  using Plain = typename PlainOf<T>::type;

  template <class T>
  static std::string preset_of(const T& target) {
    if constexpr (std::is_arithmetic_v<T>)
      return preset_text(static_cast<double>(target));
    else
      return target ? preset_text(static_cast<double>(*target)) : std::string{};
  }
  void record(std::string_view key, std::string_view type, std::string preset, const Bounds& bounds, std::string_view meaning, Presence);
  void record_choice(std::string_view key, std::string preset, std::span<const std::string> names, std::string_view meaning, Presence);
  const Value* ask(std::string_view key, std::string_view expected, Presence presence);
  [[nodiscard]] std::string full(std::string_view key) const;
  std::optional<double> read_number(std::string_view key, const Bounds&, std::string_view meaning, Presence);
  std::optional<std::int64_t> read_integer(std::string_view key, const Bounds&, std::string_view meaning, Presence);
  std::optional<std::vector<std::int64_t>> read_integers(std::string_view key, const Bounds&, std::size_t longest,
                                                         std::string_view meaning);
  std::optional<std::size_t> read_choice(std::string_view key, std::span<const std::string> names, Presence);
  std::optional<std::int64_t> check_integer(const Value& value, std::string_view key, const Bounds& bounds, std::string_view meaning);
  using Parser = std::optional<double> (*)(std::string_view);
  std::optional<double> read_quantity(std::string_view key, Parser parse, const Bounds&, std::string_view expected, Presence);

  const Table* table_;
  std::string where_;
  std::string path_;
  Complaints* complaints_;
  KeyTable* keys_;
  std::set<std::string, std::less<>> asked_;
};

}  // namespace motley::config
