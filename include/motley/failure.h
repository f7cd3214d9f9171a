// The exception of the public functions.
#pragma once
#include <motley/export.h>

#include <stdexcept>

namespace motley {

/// Thrown when a job or an argument is refused, or when training failed. what() says what was found, what was expected and what to do.
class MOTLEY_API Failure : public std::runtime_error {
 public:
  enum class Kind {
    bad_input,  // the job, the arguments or the objective: change them
    training    // the chief cannot be reached, every worker was lost, or the model is no longer finite
  };
  Failure(Kind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  [[nodiscard]] Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

}  // namespace motley
