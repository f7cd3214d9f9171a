// Binds callbacks to a period of an object's life. For completions of work that cannot be cancelled: a connection attempt, a task on a
// background thread.
#pragma once
#include <memory>
#include <utility>

namespace motley::runtime {

/// Bound callbacks are called on the event-loop thread. They may be copied and destroyed on any thread.
class CallbackScope {
 public:
  CallbackScope() = default;
  CallbackScope(const CallbackScope&) = delete;
  CallbackScope& operator=(const CallbackScope&) = delete;
  ~CallbackScope() = default;

  /// Calls of the result call `f` until cancel() or the end of this object; after that they do nothing.
  template <class F>
  [[nodiscard]] auto bind(F f) const {
    return [period = std::weak_ptr<const char>(period_), f = std::move(f)](auto&&... arguments) mutable {
      if (!period.expired()) f(std::forward<decltype(arguments)>(arguments)...);
    };
  }
  /// Callbacks that are bound from now on are called again.
  void cancel() { period_ = std::make_shared<const char>(); }

 private:
  std::shared_ptr<const char> period_ = std::make_shared<const char>();
};

}  // namespace motley::runtime
