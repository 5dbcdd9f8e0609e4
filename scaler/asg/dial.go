package asg

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	smithy "github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"windlass.dev/windlass/pkg/awscall"
)

// autoScaling is what we ask of EC2 Auto Scaling.
type autoScaling interface {
	DescribeAutoScalingGroups(context.Context, *autoscaling.DescribeAutoScalingGroupsInput, ...func(*autoscaling.Options)) (*autoscaling.DescribeAutoScalingGroupsOutput, error)
	DescribeLifecycleHooks(context.Context, *autoscaling.DescribeLifecycleHooksInput, ...func(*autoscaling.Options)) (*autoscaling.DescribeLifecycleHooksOutput, error)
	DescribeScalingActivities(context.Context, *autoscaling.DescribeScalingActivitiesInput, ...func(*autoscaling.Options)) (*autoscaling.DescribeScalingActivitiesOutput, error)
	DescribeWarmPool(context.Context, *autoscaling.DescribeWarmPoolInput, ...func(*autoscaling.Options)) (*autoscaling.DescribeWarmPoolOutput, error)
	DescribeInstanceRefreshes(context.Context, *autoscaling.DescribeInstanceRefreshesInput, ...func(*autoscaling.Options)) (*autoscaling.DescribeInstanceRefreshesOutput, error)
	DescribeLaunchConfigurations(context.Context, *autoscaling.DescribeLaunchConfigurationsInput, ...func(*autoscaling.Options)) (*autoscaling.DescribeLaunchConfigurationsOutput, error)

	LaunchInstances(context.Context, *autoscaling.LaunchInstancesInput, ...func(*autoscaling.Options)) (*autoscaling.LaunchInstancesOutput, error)
	SetDesiredCapacity(context.Context, *autoscaling.SetDesiredCapacityInput, ...func(*autoscaling.Options)) (*autoscaling.SetDesiredCapacityOutput, error)
	TerminateInstanceInAutoScalingGroup(context.Context, *autoscaling.TerminateInstanceInAutoScalingGroupInput, ...func(*autoscaling.Options)) (*autoscaling.TerminateInstanceInAutoScalingGroupOutput, error)
	CompleteLifecycleAction(context.Context, *autoscaling.CompleteLifecycleActionInput, ...func(*autoscaling.Options)) (*autoscaling.CompleteLifecycleActionOutput, error)
	RecordLifecycleActionHeartbeat(context.Context, *autoscaling.RecordLifecycleActionHeartbeatInput, ...func(*autoscaling.Options)) (*autoscaling.RecordLifecycleActionHeartbeatOutput, error)
	CreateOrUpdateTags(context.Context, *autoscaling.CreateOrUpdateTagsInput, ...func(*autoscaling.Options)) (*autoscaling.CreateOrUpdateTagsOutput, error)
	SuspendProcesses(context.Context, *autoscaling.SuspendProcessesInput, ...func(*autoscaling.Options)) (*autoscaling.SuspendProcessesOutput, error)

	// What people ask for when they uninstall.
	ResumeProcesses(context.Context, *autoscaling.ResumeProcessesInput, ...func(*autoscaling.Options)) (*autoscaling.ResumeProcessesOutput, error)
	DeleteTags(context.Context, *autoscaling.DeleteTagsInput, ...func(*autoscaling.Options)) (*autoscaling.DeleteTagsOutput, error)
	DeleteLifecycleHook(context.Context, *autoscaling.DeleteLifecycleHookInput, ...func(*autoscaling.Options)) (*autoscaling.DeleteLifecycleHookOutput, error)
}

// computing is what we ask of EC2.
type computing interface {
	DescribeAvailabilityZones(context.Context, *ec2.DescribeAvailabilityZonesInput, ...func(*ec2.Options)) (*ec2.DescribeAvailabilityZonesOutput, error)
	DescribeImages(context.Context, *ec2.DescribeImagesInput, ...func(*ec2.Options)) (*ec2.DescribeImagesOutput, error)
	DescribeInstances(context.Context, *ec2.DescribeInstancesInput, ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error)
	DescribeInstanceTypes(context.Context, *ec2.DescribeInstanceTypesInput, ...func(*ec2.Options)) (*ec2.DescribeInstanceTypesOutput, error)
	DescribeLaunchTemplateVersions(context.Context, *ec2.DescribeLaunchTemplateVersionsInput, ...func(*ec2.Options)) (*ec2.DescribeLaunchTemplateVersionsOutput, error)
	DescribeSpotPriceHistory(context.Context, *ec2.DescribeSpotPriceHistoryInput, ...func(*ec2.Options)) (*ec2.DescribeSpotPriceHistoryOutput, error)
	GetInstanceTypesFromInstanceRequirements(context.Context, *ec2.GetInstanceTypesFromInstanceRequirementsInput, ...func(*ec2.Options)) (*ec2.GetInstanceTypesFromInstanceRequirementsOutput, error)
}

// managed is what we ask of EKS.
type managed interface {
	DescribeNodegroup(context.Context, *eks.DescribeNodegroupInput, ...func(*eks.Options)) (*eks.DescribeNodegroupOutput, error)
}

// Account is an AWS account in one region, as the standard environment
// describes it (AWS_REGION, AWS_ENDPOINT_URL, credentials).
type Account struct {
	Region  string
	scaling autoScaling
	compute computing
	managed managed
	told    told
	latest  descriptions
	// launching is the HTTP client of launches: AWS answers when it has asked EC2. Nil is that of all calls.
	launching autoscaling.HTTPClient
}

// Call is one call that was made, for metrics.
type Call struct {
	Service, Operation string
	// Code is "ok", AWS's error code, or "unreachable".
	Code string
	Took time.Duration
}

const (
	// readAttempts is how often the SDK tries a call that only reads. What
	// fails then is tried again at the next reading, not here.
	readAttempts = 2
	// readBackoff is the most that the SDK waits between the two.
	readBackoff = 500 * time.Millisecond
	// callTime is how long one try may take. The SDK knows no such bound, and a
	// connection that a gateway forgot would hang without end.
	callTime = 8 * time.Second
	// findCredentials is how long the SDK may look for credentials.
	findCredentials = 10 * time.Second
)

// Dial prepares the clients. It fails, with a text that says what to do, where
// there is no region or there are no credentials; AWS itself is not called.
// record, if not nil, is called for every call.
func Dial(ctx context.Context, record func(Call)) (*Account, error) {
	return dial(ctx, record, callTime)
}

func dial(ctx context.Context, record func(Call), callTime time.Duration) (*Account, error) {
	cfg, err := config.LoadDefaultConfig(ctx,
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(callTime)),
		config.WithAPIOptions([]func(*middleware.Stack) error{awscall.KeepAnswer}),
		config.WithRetryer(func() aws.Retryer {
			return retry.NewStandard(func(o *retry.StandardOptions) {
				o.MaxAttempts, o.MaxBackoff = readAttempts, readBackoff
			})
		}))
	if err != nil {
		return nil, fmt.Errorf("reading the AWS configuration: %w", err)
	}
	if cfg.Region == "" {
		return nil, errors.New("no AWS region: set AWS_REGION to the region of the Auto Scaling groups")
	}
	if err := haveCredentials(ctx, cfg); err != nil {
		return nil, err
	}
	if record != nil {
		cfg.APIOptions = append(cfg.APIOptions, recorder(record))
	}
	account := &Account{
		Region:  cfg.Region,
		scaling: autoscaling.NewFromConfig(cfg),
		compute: ec2.NewFromConfig(cfg),
		managed: eks.NewFromConfig(cfg),
	}
	if client, ok := cfg.HTTPClient.(*awshttp.BuildableClient); ok { // with what AWS_CA_BUNDLE names
		account.launching = client.WithTimeout(launchTime)
	}
	return account, nil
}

func haveCredentials(ctx context.Context, cfg aws.Config) error {
	ctx, cancel := context.WithTimeout(ctx, findCredentials)
	defer cancel()
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		return fmt.Errorf("%w: give the service account a role (EKS Pod Identity or IRSA), the instance a profile, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY: %w", ErrCredentials, err)
	}
	return nil
}

// once keeps the SDK from repeating a call that changes something: if the
// answer is lost, only a fresh reading shows whether it arrived.
func once(o *autoscaling.Options) { o.Retryer = aws.NopRetryer{} }

// recorder reports each call when it has ended, with its retries.
func recorder(record func(Call)) func(*middleware.Stack) error {
	return func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("WindlassRecord",
			func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
				began := time.Now()
				out, metadata, err := next.HandleInitialize(ctx, in)
				record(Call{
					Service:   awsmiddleware.GetServiceID(ctx),
					Operation: awsmiddleware.GetOperationName(ctx),
					Code:      codeOf(err),
					Took:      time.Since(began),
				})
				return out, metadata, err
			}), middleware.After)
	}
}

func codeOf(err error) string {
	if err == nil {
		return "ok"
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return "unreachable"
}
