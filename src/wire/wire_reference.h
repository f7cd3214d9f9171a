// The page docs/wire.md: every message with its number, its senders and its fields, from the described structs and a table of meanings.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace motley::wire {

/// "Order" or "Order.step", and its meaning.
struct Meaning {
  std::string_view name;
  std::string_view text;
};

/// The table of meanings: one row for each message, for each structure inside a message, and for each field of both.
[[nodiscard]] const std::vector<Meaning>& meanings();

/// Names that have no meaning, and meanings of names that do not exist; empty when the table is complete.
[[nodiscard]] std::vector<std::string> misfits(const std::vector<Meaning>& table);

/// The page, as `motley doc wire` prints it.
[[nodiscard]] std::string wire_reference();

}  // namespace motley::wire
