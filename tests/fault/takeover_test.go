package fault_test

import (
	"time"
)

// promised is after how long a killed replica's run goes on elsewhere.
const promised = 35 * time.Second
