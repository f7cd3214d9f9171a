// Result<T>: a value, or the reason why there is none. For failures of input, peers and environment; bugs of our own use check().
#pragma once
#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace motley {

/// The action that the caller should take next.
enum class Next {
  tell_user,  // the input is wrong: say what to change; exit 2
  drop_peer,  // a peer is broken: continue without it
  give_up     // the environment failed: end this run; exit 3
};

struct Error {
  Next next{};
  std::string message;  // names what was tried, what was found, what was expected, and the remedy
};

inline Error bad_input(std::string message) { return {Next::tell_user, std::move(message)}; }
inline Error peer_broken(std::string message) { return {Next::drop_peer, std::move(message)}; }
inline Error world_failed(std::string message) { return {Next::give_up, std::move(message)}; }

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : held_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor): `return value;` is the point
  Result(Error error) : held_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const { return held_.index() == 0; }
  explicit operator bool() const { return ok(); }

  /// Must be ok().
  [[nodiscard]] T& value() & { return require(), std::get<0>(held_); }
  [[nodiscard]] const T& value() const& { return require(), std::get<0>(held_); }
  [[nodiscard]] T&& value() && { return require(), std::move(std::get<0>(held_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  /// Must not be ok().
  [[nodiscard]] const Error& error() const {
    check(!ok(), "an error is read only from a failed Result");
    return std::get<1>(held_);
  }

 private:
  void require() const {
    if (!ok()) [[unlikely]]
      fail_check("a value is read only from a good Result, but: " + std::get<1>(held_).message);
  }
  std::variant<T, Error> held_;
};

struct Done {};
/// For operations without a value.
using Outcome = Result<Done>;

}  // namespace motley
