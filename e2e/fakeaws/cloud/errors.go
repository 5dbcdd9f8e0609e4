package cloud

import "fmt"

// Error is an error as AWS sends it. The server's fault is told by the status.
type Error struct {
	Status  int // HTTP
	Code    string
	Message string
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Errorf makes an error of the given HTTP status and code.
func Errorf(status int, code, format string, args ...any) *Error {
	return &Error{Status: status, Code: code, Message: fmt.Sprintf(format, args...)}
}

// invalid is the code that Auto Scaling sends for nearly everything a caller does wrong.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/CommonErrors.html
func invalid(format string, args ...any) *Error {
	return Errorf(400, "ValidationError", format, args...)
}

// inProgress says that a scaling activity has to end first.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_SetDesiredCapacity.html#API_SetDesiredCapacity_Errors
func inProgress(activity string) *Error {
	return Errorf(400, "ScalingActivityInProgress", "Scaling activity %s is in progress and blocks this action", activity)
}

func noGroup(name string) *Error {
	return invalid("AutoScalingGroup name not found - AutoScalingGroup '%s' not found", name)
}

func noManagedInstance(id string) *Error {
	return invalid("Instance Id not found - No managed instance found for instance ID: %s", id)
}
