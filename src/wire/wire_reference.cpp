#include "wire/wire_reference.h"

#include <fmt/format.h>

#include <array>
#include <boost/mp11.hpp>
#include <functional>
#include <map>
#include <set>

#include "wire/encode.h"
#include "wire/frame.h"
#include "wire/permissions.h"

namespace motley::wire {
namespace {

struct Field {
  std::string name;
  std::string type;
};
struct Structure {
  std::string name;
  std::vector<Field> fields;
};

/// Structures by name, in the order in which they are first met.
class Structures {
 public:
  template <class T>
  void add(std::string name) {
    if (!known_.insert(name).second) return;
    const std::size_t place = list_.size();
    list_.push_back({std::move(name), {}});
    boost::mp11::mp_for_each<Members<T>>([&](auto member) {
      using Type = std::remove_cvref_t<decltype(std::declval<T>().*member.pointer)>;
      std::string type = type_name<Type>();  // may add to the list
      list_[place].fields.push_back({member.name, std::move(type)});
    });
  }
  [[nodiscard]] const std::vector<Structure>& list() const { return list_; }

 private:
  template <class T>
  std::string type_name();

  std::set<std::string> known_;
  std::vector<Structure> list_;
};

/// The last part of a type's name as the compiler writes it: "motley::wire::Part" is "Part".
template <class T>
std::string short_name() {
  const std::string_view function = __PRETTY_FUNCTION__;  // ... [with T = motley::wire::Part; ...] or [T = motley::wire::Part]
  const std::size_t from = function.find("T = ") + 4;
  const std::string_view name = function.substr(from, function.find_first_of(";]", from) - from);
  return std::string(name.substr(name.rfind(':') + 1));
}

template <class T>
std::string Structures::type_name() {
  if constexpr (std::same_as<T, bool>) {
    return "bool";
  } else if constexpr (std::is_enum_v<T>) {
    std::string values;
    boost::mp11::mp_for_each<boost::describe::describe_enumerators<T>>([&](auto described) {
      values += fmt::format("{}{} {}", values.empty() ? "" : ", ", static_cast<int>(described.value), described.name);
    });
    return fmt::format("u{}: {}", 8 * sizeof(T), values);
  } else if constexpr (std::integral<T>) {
    return fmt::format("{}{}", std::is_signed_v<T> ? 'i' : 'u', 8 * sizeof(T));
  } else if constexpr (std::same_as<T, double>) {
    return "f64";
  } else if constexpr (is_named_number<T>) {
    return type_name<decltype(T::value)>();
  } else if constexpr (std::same_as<T, Duration>) {
    return "duration";
  } else if constexpr (std::same_as<T, std::string>) {
    return "text";
  } else if constexpr (List<T>) {
    return "list of " + type_name<typename T::value_type>();
  } else {
    add<T>(short_name<T>());
    return short_name<T>();
  }
}

struct AllStructures {
  std::vector<Structure> messages;  // by kind
  std::vector<Structure> nested;    // inside messages
};

AllStructures all_structures() {
  Structures found;
  std::set<std::string> names;
  boost::mp11::mp_for_each<boost::mp11::mp_transform<std::add_pointer_t, Message>>([&](auto pointer) {
    using T = std::remove_pointer_t<decltype(pointer)>;
    const std::string name(name_of(Message(T{})));
    names.insert(name);
    found.add<T>(name);
  });
  AllStructures all;
  for (const Structure& structure : found.list()) (names.contains(structure.name) ? all.messages : all.nested).push_back(structure);
  return all;
}

/// "control: a worker; bulk: a server": every row of permissions.cpp that lists this kind.
std::string senders_of(std::size_t kind) {
  std::string text;
  for (const Lane lane : {Lane::control, Lane::bulk}) {
    std::string senders;
    for (int s = 0; s <= static_cast<int>(Sender::neighbour); ++s)
      if (permits(static_cast<Sender>(s), lane, kind))
        senders += (senders.empty() ? "" : ", ") + std::string(name_of(static_cast<Sender>(s)));
    if (senders.empty()) continue;
    text += fmt::format("{}{} lane, from {}", text.empty() ? "" : "; ", lane == Lane::control ? "control" : "bulk", senders);
  }
  return text;
}

using Table = std::map<std::string_view, std::string_view>;

std::string rows_of(const Structure& structure, const Table& table) {
  if (structure.fields.empty()) return "No fields.\n";
  std::string text = "| field | type | meaning |\n|---|---|---|\n";
  for (const Field& field : structure.fields) {
    const auto meaning = table.find(structure.name + "." + field.name);
    text += fmt::format("| `{}` | {} | {} |\n", field.name, field.type, meaning == table.end() ? "" : meaning->second);
  }
  return text;
}

std::string meaning_of(const Structure& structure, const Table& table) {
  const auto meaning = table.find(structure.name);
  return std::string(meaning == table.end() ? "" : meaning->second);
}

Table table_of(const std::vector<Meaning>& rows) {
  Table table;
  for (const Meaning& row : rows) table.emplace(row.name, row.text);
  return table;
}

}  // namespace

std::vector<std::string> misfits(const std::vector<Meaning>& table) {
  std::set<std::string, std::less<>> names;
  const AllStructures all = all_structures();
  for (const auto* list : {&all.messages, &all.nested})
    for (const Structure& structure : *list) {
      names.insert(structure.name);
      for (const Field& field : structure.fields) names.insert(structure.name + "." + field.name);
    }
  std::vector<std::string> found;
  std::set<std::string_view> explained;
  for (const Meaning& row : table) {
    if (!names.contains(row.name)) found.push_back(fmt::format("{}: a meaning without a message or field of this name", row.name));
    if (!explained.insert(row.name).second) found.push_back(fmt::format("{}: two meanings", row.name));
  }
  for (const std::string& name : names)
    if (!explained.contains(name)) found.push_back(fmt::format("{}: no meaning", name));
  return found;
}

std::string wire_reference() {
  const AllStructures all = all_structures();
  const Table table = table_of(meanings());
  std::string page = fmt::format(
      "# Messages\n\n"
      "Every message between the processes of a training. This page is printed by `motley doc wire` from the structs in\n"
      "[`src/wire`](../src/wire), the table of meanings in [`wire_meanings.cpp`](../src/wire/wire_meanings.cpp) and the table of senders "
      "in\n[`permissions.cpp`](../src/wire/permissions.cpp). A connection has two lanes: *control* carries messages alone, *bulk* carries "
      "messages with a payload\nof values beside them.\n\n"
      "A message is sent as a frame ([`frame.h`](../src/wire/frame.h)): `magic:u32 version:u16 kind:u16 length:u32`, the fields in order, "
      "`crc:u32`. The protocol's version is\n{}; a peer of another version is refused. Integers are little-endian; `f64` is an IEEE 754 "
      "double; a `bool` is one byte; a `duration` is an `i64` of\nnanoseconds; a `text` or a `list` is a `u32` count and its items.\n",
      version);
  page += "\n## Messages by kind\n";
  for (std::size_t kind = 0; kind < all.messages.size(); ++kind) {
    const Structure& message = all.messages[kind];
    page += fmt::format("\n### {} {}\n\n{}\n\nSent on the {}.\n\n{}", kind, message.name, meaning_of(message, table), senders_of(kind),
                        rows_of(message, table));
  }
  page += "\n## Structures inside messages\n";
  for (const Structure& structure : all.nested)
    page += fmt::format("\n### {}\n\n{}\n\n{}", structure.name, meaning_of(structure, table), rows_of(structure, table));
  return page;
}

}  // namespace motley::wire
